"""Frames as a broker writes them, from plain values."""

from collections.abc import Mapping
from typing import Any

from lamina.wire.codec import encode_response
from lamina.wire.fields import Field, fields_of
from lamina.wire.versions import response_schema


def response_frame(api_key: int, version: int, correlation_id: int, **facts: Any) -> bytes:
    """With its size. What is not said is empty or 0."""
    return bytes(encode_response(_build(response_schema(api_key, version), facts), correlation_id))


def _build(schema: Any, facts: Mapping[str, Any]) -> Any:
    return schema(**{field.name: _value(field, facts.get(field.name)) for field in fields_of(schema)})


def _value(field: Field, fact: Any) -> Any:
    if field.is_array:
        if fact is None:
            return ()
        return tuple(fact if field.entity is None else (_build(field.entity, one) for one in fact))
    if fact is None:
        return field.default if field.tag is not None else _empty(field)
    return fact if field.entity is None else _build(field.entity, fact)


def _empty(field: Field) -> Any:
    if field.nullable:
        return None
    return {"string": "", "bytes": b"", "bool": False}.get(field.wire_type, 0)
