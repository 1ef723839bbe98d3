"""Messages of any version from one set of facts.

The caller states all it knows; what the version at hand cannot carry is left out. Owns nothing but
that. Must not know any API.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from lamina.wire.fields import Entity, fields_of
from lamina.wire.versions import nested_schema, request_schema, response_schema

_THROTTLE = "throttle_time"


class Shape:
    """One version of a message or of a structure in it, to be called with every field that any version has."""

    __slots__ = ("_names", "_schema")

    def __init__(self, schema: type[Entity]) -> None:
        self._schema = schema
        self._names = frozenset(field.name for field in fields_of(schema))

    def __call__(self, **fields: Any) -> Any:
        """A throttle time that is not stated is 0: only the router knows it."""
        names = self._names
        if _THROTTLE in names:
            fields.setdefault(_THROTTLE, 0)
        return self._schema(**{name: value for name, value in fields.items() if name in names})

    def has(self, field: str) -> bool:
        return field in self._names

    def of(self, field: str) -> "Shape":
        """The shape of the structures in one field."""
        return _nested(self._schema, field)


@cache
def response_shape(api_key: int, api_version: int) -> Shape:
    return Shape(response_schema(api_key, api_version))


@cache
def _nested(schema: type[Entity], field: str) -> Shape:
    return Shape(nested_schema(schema, field))


def build_request(api_key: int, api_version: int, facts: Mapping[str, Any]) -> Any:
    """A request from plain values: structures are mappings, arrays are sequences of them.

    What is not said has its default; a field without one that is not said raises TypeError.
    """
    return _build(request_schema(api_key, api_version), facts)


def _build(schema: type[Entity], facts: Mapping[str, Any]) -> Any:
    said: dict[str, Any] = {}
    for field in fields_of(schema):
        if field.name not in facts:
            continue
        value = facts[field.name]
        if field.entity is not None and value is not None:
            entity = field.entity
            value = tuple(_build(entity, one) for one in value) if field.is_array else _build(entity, value)
        elif field.is_array and value is not None:
            value = tuple(value)
        said[field.name] = value
    return schema(**said)
