"""The settings of all brokers at once, which librdkafka cannot ask for: they belong to the broker with the empty name.

Must not know any command.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.wire.api_keys import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS

_DESCRIBE_CONFIGS_VERSIONS = range(1, 5)
_INCREMENTAL_ALTER_CONFIGS_VERSIONS = range(2)
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


def describe_defaults(cluster: Cluster) -> list[Default]:
    resource = {"resource_type": _BROKER, "resource_name": _EVERY_BROKER, "configuration_keys": None}
    call = MessageCall(
        DESCRIBE_CONFIGS,
        _DESCRIBE_CONFIGS_VERSIONS,
        resources=[resource],
        include_synonyms=False,
        include_documentation=False,
    )
    result = _only(cluster.ask(lambda peers: peers.request(AnyBroker(), call)).results)
    return [Default(config.name, config.value, config.read_only, config.is_sensitive) for config in result.configs]


def alter_defaults(cluster: Cluster, wanted: Mapping[str, str | None]) -> None:
    """All or, if one is refused, none; None takes a setting back."""
    configs = [
        {"name": name, "config_operation": _DELETE if value is None else _SET, "value": value}
        for name, value in wanted.items()
    ]
    resource = {"resource_type": _BROKER, "resource_name": _EVERY_BROKER, "configs": configs}
    call = MessageCall(
        INCREMENTAL_ALTER_CONFIGS, _INCREMENTAL_ALTER_CONFIGS_VERSIONS, resources=[resource], validate_only=False
    )
    _only(cluster.ask(lambda peers: peers.request(AnyBroker(), call)).responses)


def _only(results: Sequence[Any]) -> Any:
    """The result of the one resource that was asked about."""
    if len(results) != 1:
        raise ClientError("the broker did not answer what it was asked; look at its log")
    _check(results[0])
    return results[0]


def _check(result: Any) -> None:
    if result.error_code:
        text = result.error_message or f"error {int(result.error_code)} of the protocol"
        raise ClientError(text[0].lower() + text[1:].rstrip(".") if text[1:2].islower() else text.rstrip("."))
