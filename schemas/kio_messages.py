"""What kio says about the messages of an API.

Owns the reading of kio's dataclasses and their field metadata. Must not know how the table is written.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from datetime import timedelta
from enum import IntEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

NO_DEFAULT = MISSING


@dataclass(frozen=True, slots=True)
class KioField:
    """One field of one message version."""

    name: str
    wire_type: str
    """kio's name of the wire type; of a nested structure, the name of its class."""
    structure: type[Any] | None
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any
    """As the table has it: durations are milliseconds, a structure of defaults is `{}`, and `NO_DEFAULT` is none."""


def request_versions(api_key: int) -> Mapping[int, type[Any]]:
    return {version: load_request_schema(api_key, version) for version in versions_of(api_key)}


def response_versions(api_key: int) -> Mapping[int, type[Any]]:
    return {version: load_response_schema(api_key, version) for version in versions_of(api_key)}


def versions_of(api_key: int) -> list[int]:
    return sorted(schema_name_map[api_key_map[api_key]])


def fields_of(structure: type[Any]) -> list[KioField]:
    return [_describe(field) for field in dataclasses.fields(structure)]


def _describe(field: dataclasses.Field[Any]) -> KioField:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    structure = inner if dataclasses.is_dataclass(inner) else None
    return KioField(
        field.name,
        structure.__name__ if isinstance(structure, type) else field.metadata["kafka_type"],
        structure if isinstance(structure, type) else None,
        is_array,
        nullable,
        field.metadata.get("tag"),
        _default(field.default),
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (member for member in get_args(annotation) if member is not NoneType)
    return inner, True


def _default(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, IntEnum):
        return int(value)
    if dataclasses.is_dataclass(value):
        made_of_defaults: Any = type(value)
        if value != made_of_defaults():
            raise ValueError(f"{value} is not made of the defaults of its fields")
        return {}
    return value
