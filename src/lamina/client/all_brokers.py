"""The settings of all brokers at once, which librdkafka cannot ask for: they belong to the broker with the empty name.

Must not know any command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina.client.errors import ClientError
from lamina.client.own_connection import ask
from lamina.wire.versions import nested_schema, request_schema

DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION = 32, 4
INCREMENTAL_ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS_VERSION = 44, 1
_BROKER = 4
_EVERY_BROKER = ""
_SET, _DELETE = 0, 1


@dataclass(frozen=True, slots=True)
class Default:
    """A setting of all brokers."""

    name: str
    value: str | None
    is_read_only: bool
    is_sensitive: bool


def describe_defaults(address: tuple[str, int]) -> list[Default]:
    schema = request_schema(DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION)
    resource = nested_schema(schema, "resources")(
        resource_type=_BROKER, resource_name=_EVERY_BROKER, configuration_keys=None
    )
    request: Any = schema
    (result,) = ask(address, request(resources=(resource,))).results
    _check(result)
    return [Default(config.name, config.value, config.read_only, config.is_sensitive) for config in result.configs]


def alter_defaults(address: tuple[str, int], wanted: Mapping[str, str | None]) -> None:
    """All or, if one is refused, none; None takes a setting back."""
    schema = request_schema(INCREMENTAL_ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS_VERSION)
    resource_schema = nested_schema(schema, "resources")
    config = nested_schema(resource_schema, "configs")
    configs = tuple(
        config(name=name, config_operation=_DELETE if value is None else _SET, value=value)
        for name, value in wanted.items()
    )
    resource = resource_schema(resource_type=_BROKER, resource_name=_EVERY_BROKER, configs=configs)
    request: Any = schema
    (result,) = ask(address, request(resources=(resource,), validate_only=False)).responses
    _check(result)


def _check(result: Any) -> None:
    if result.error_code:
        text = result.error_message or f"error {int(result.error_code)} of the protocol"
        raise ClientError(text[0].lower() + text[1:].rstrip(".") if text[1:2].islower() else text.rstrip("."))
