"""The settings of all brokers at once, which librdkafka cannot ask for: they belong to the broker with the empty name.

Asks one broker over a connection of its own. Only a listener without TLS and login can be asked so. Must not know
any command.
"""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina.client.errors import ClientError
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import nested_schema, request_schema

DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION = 32, 4
INCREMENTAL_ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS_VERSION = 44, 1
_BROKER = 4
_EVERY_BROKER = ""
_SET, _DELETE = 0, 1
_TIMEOUT_SECONDS = 30.0
_MAX_ANSWER_BYTES = 100 * 1024 * 1024


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
    (result,) = _ask(address, request(resources=(resource,))).results
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
    (result,) = _ask(address, request(resources=(resource,), validate_only=False)).responses
    _check(result)


def _check(result: Any) -> None:
    if result.error_code:
        text = result.error_message or f"error {int(result.error_code)} of the protocol"
        raise ClientError(text[0].lower() + text[1:].rstrip(".") if text[1:2].islower() else text.rstrip("."))


def _ask(address: tuple[str, int], request: Any) -> Any:
    try:
        with socket.create_connection(address, _TIMEOUT_SECONDS) as connection:
            connection.sendall(encode_request(request, 1, "lamina"))
            (size_bytes,) = struct.unpack(">i", _receive(connection, 4))
            if not 0 < size_bytes <= _MAX_ANSWER_BYTES:
                raise ConnectionError("it does not speak Kafka's protocol")
            _, response = parse_response(request.__api_key__, request.__version__, _receive(connection, size_bytes))
            return response
    except (OSError, MalformedRequest) as error:
        host, port = address
        raise ClientError(f"{host}:{port} gave no answer ({error}); look at the broker's log, or try again") from error


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < size_bytes:
        part = connection.recv(min(size_bytes - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("it hung up")
        parts += part
    return bytes(parts)
