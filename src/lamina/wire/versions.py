"""Which header goes with which message version, and where its schema is.

Owns the flexible-version table (facts: protocol.md §1) and the look-up of schemas, which are made one message version
at a time. Knows nothing of which APIs a broker offers; that is the router's table.
"""

from functools import cache
from typing import Any

from lamina.wire.api_keys import API_VERSIONS
from lamina.wire.fields import Entity, fields_of
from lamina.wire.schemas import message_class

_API_KEYS_BY_FIRST_FLEXIBLE_VERSION = {
    0: (45, 46, 50, 51, 52, 55, *range(57, 76), *range(80, 93), 10_000),
    1: (27, 44, 48, 49, 53, 54, 76, 77, 78, 79),
    2: (21, 22, 29, 30, 31, *range(33, 44), 56),
    3: (7, 10, 16, 18, 24, 25, 26, 28),
    4: (12, 13, 14, 20, 23, 32),
    5: (15, 19),
    6: (2, 9, 11),
    8: (8,),
    9: (0, 3),
    12: (1,),
}
"""SaslHandshake (17) and OffsetDelete (47) never became flexible and are absent."""

_FIRST_FLEXIBLE_VERSION = {
    api_key: version for version, keys in _API_KEYS_BY_FIRST_FLEXIBLE_VERSION.items() for api_key in keys
}

_NEVER = 1 << 15


class UnknownMessage(LookupError):
    """No schema for this API key and version."""


def is_flexible(api_key: int, api_version: int) -> bool:
    """Whether this version has compact lengths and tagged fields; an unknown API counts as not flexible."""
    return api_version >= _FIRST_FLEXIBLE_VERSION.get(api_key, _NEVER)


def request_header_version(api_key: int, api_version: int) -> int:
    return 2 if is_flexible(api_key, api_version) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """ApiVersions answers with header v0 always: its client may not know yet what the broker speaks."""
    return 1 if api_key != API_VERSIONS and is_flexible(api_key, api_version) else 0


@cache
def request_schema(api_key: int, api_version: int) -> Any:
    """The class of this request, made on first use; raises `UnknownMessage`."""
    schema = message_class(api_key, api_version, is_request=True, is_flexible=is_flexible(api_key, api_version))
    if schema is None:
        raise UnknownMessage(f"There is no request of API key {api_key} version {api_version}.")
    return schema


@cache
def response_schema(api_key: int, api_version: int) -> Any:
    """The class of this response, made on first use; raises `UnknownMessage`."""
    schema = message_class(api_key, api_version, is_request=False, is_flexible=is_flexible(api_key, api_version))
    if schema is None:
        raise UnknownMessage(f"There is no response of API key {api_key} version {api_version}.")
    return schema


@cache
def nested_schema(schema: type[Entity], field: str) -> Any:
    """The class of the structures in one field: `nested_schema(MetadataResponse, "topics")`."""
    for described in fields_of(schema):
        if described.name == field and described.entity is not None:
            return described.entity
    raise UnknownMessage(f"{schema.__name__} v{schema.__version__} has no structures in a field {field}.")
