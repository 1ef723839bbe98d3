"""What kio says about the fields of a message, as plain values for the two compilers.

Owns the reading of kio's dataclass metadata: field order, wire type, nullability, arrays, tags and defaults.
Must not know how a field is written or read.
"""

import dataclasses
from dataclasses import MISSING, dataclass
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kio.static.protocol import Entity

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "uuid": "16s",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""Wire types of one size, by kio's name, as `struct` formats."""

INTEGER_TYPES = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})

_IMPLICIT_DEFAULTS: dict[str, Any] = {
    "string": "",
    "bytes": b"",
    "bool": False,
    "float64": 0.0,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message version."""

    name: str
    wire_type: str
    """kio's name of the wire type; "entity" for a nested structure."""
    entity: type[Entity] | None
    nullable: bool
    """Of an array: whether the array may be null. Elements never are, save UUIDs, whose zero is `None`."""
    is_array: bool
    tag: int | None
    default: Any
    """Of a tagged field: the value that is left out on the wire."""

    @property
    def fixed_format(self) -> str | None:
        """Its `struct` format if it always takes the same number of bytes."""
        return None if self.is_array else FIXED_FORMATS.get(self.wire_type)


def fields_of(entity_type: type[Entity]) -> tuple[Field, ...]:
    """The fields in wire order; tagged ones stand among the others, as in the dataclass."""
    return tuple(_describe(field) for field in dataclasses.fields(entity_type))


def _describe(field: dataclasses.Field[Any]) -> Field:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    entity: type[Entity] | None = inner if dataclasses.is_dataclass(inner) else None  # type: ignore[assignment]
    wire_type = "entity" if entity else field.metadata["kafka_type"]
    tag = field.metadata.get("tag")
    default = None
    if tag is not None:
        default = field.default if field.default is not MISSING else _IMPLICIT_DEFAULTS.get(wire_type, 0)
    return Field(field.name, wire_type, entity, nullable, is_array, tag, default)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (member for member in get_args(annotation) if member is not NoneType)
    return inner, True
