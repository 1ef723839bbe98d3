"""Random messages of every version, and what kio's own writer makes of them."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.serial._serialize import get_field_writer

from lamina.wire.fields import Entity, Field, fields_of
from lamina.wire.primitives import write_uvarint
from lamina.wire.versions import request_schema, response_schema
from schemas.apis import API_KEYS
from schemas.kio_messages import KioField, versions_of
from schemas.kio_messages import fields_of as kio_fields

VERSIONS = {api_key: versions_of(api_key) for api_key in API_KEYS}
"""API key → all its versions, of every message that the table has from kio."""

REQUESTS = [(api_key, version) for api_key, versions in VERSIONS.items() for version in versions]


def schemas() -> list[type[Entity]]:
    """Every request and every response."""
    return [schema(*message) for message in REQUESTS for schema in (request_schema, response_schema)]


def random_entity(entity_type: type[Entity], random: Random) -> Any:
    values = {field.name: _random_field(field, random) for field in fields_of(entity_type)}
    return entity_type(**values)


def _random_field(field: Field, random: Random) -> Any:
    if field.tag is not None and random.random() < 0.5:
        return field.default
    if field.nullable and field.tag is None and random.random() < 0.2:
        return None
    if field.is_array:
        many = 2 if field.entity else 130
        return tuple(_random_value(field, random) for _ in range(random.choice((0, 1, 2, many))))
    return _random_value(field, random)


def _random_value(field: Field, random: Random) -> Any:
    match field.wire_type:
        case "entity":
            assert field.entity is not None
            return random_entity(field.entity, random)
        case "string":
            return random.choice(("", "a", "topic-ü", "x" * random.randrange(300)))
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 126, 127, 128, 400)))
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.uniform(-1e9, 1e9)
        case "uuid":
            return random.choice((None, UUID(int=random.getrandbits(128))))
        case "error_code":
            return random.choice(list(ErrorCode))
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=random.randrange(-(2**31), 2**31))
        case "datetime_i64":
            return datetime.fromtimestamp(random.randrange(2**31), UTC)
        case integer:
            bits = int(integer.lstrip("uint"))
            low = 0 if integer.startswith("u") else -(1 << bits - 1)
            return random.choice((low, low + (1 << bits) - 1, random.randrange(100), -1 if low else 0))


def kio_bytes(message: Entity) -> bytes:
    """What kio's writer makes of a request or response."""
    in_kio = kio_message(message)
    out = io.BytesIO()
    entity_writer(type(in_kio))(out, in_kio)
    return out.getvalue()


def kio_message(message: Entity) -> Any:
    """The same request or response in kio's class."""
    load = load_request_schema if type(message).__name__.endswith("Request") else load_response_schema
    return _kio_entity(load(message.__api_key__, message.__version__), message)


def _kio_entity(schema: Any, entity: Entity) -> Any:
    return schema(**{field.name: _kio_value(field, getattr(entity, field.name)) for field in kio_fields(schema)})


def _kio_value(field: KioField, value: Any) -> Any:
    if field.structure is None or value is None:
        return value
    if field.is_array:
        return tuple(_kio_entity(field.structure, one) for one in value)
    return _kio_entity(field.structure, value)


UNKNOWN_TAGS = ((4000, b"\xff\xff\xff"), (2**31 - 1, b""))


def bytes_with_unknown_tags(message: Entity) -> bytes:
    """As `kio_bytes`, with two tags that no schema has at the end of every structure at every depth."""
    return _bytes_with_unknown_tags(kio_message(message))


def _bytes_with_unknown_tags(entity: Any) -> bytes:
    out = bytearray()
    tags: dict[int, bytes] = {}
    flexible = type(entity).__flexible__
    for field, raw in zip(kio_fields(type(entity)), dataclasses.fields(entity), strict=True):
        value = getattr(entity, field.name)
        encoded = _field_bytes(field, raw, value, flexible)
        if field.tag is None:
            out += encoded
        elif value != raw.default:
            tags[field.tag] = encoded
    if flexible:
        tags.update(UNKNOWN_TAGS)
        write_uvarint(out, len(tags))
        for tag, encoded in sorted(tags.items()):
            write_uvarint(out, tag)
            write_uvarint(out, len(encoded))
            out += encoded
    return bytes(out)


def _field_bytes(field: KioField, raw: Any, value: Any, flexible: bool) -> bytes:
    if field.structure is None or value is None:
        if field.tag is not None and value is None:
            return b""
        out = io.BytesIO()
        get_field_writer(raw, flexible, is_request_header=False, is_tag=field.tag is not None)(out, value)
        return out.getvalue()
    if not field.is_array:
        marker = b"\x01" if field.nullable and field.tag is None else b""
        return marker + _bytes_with_unknown_tags(value)
    counted = bytearray()
    if flexible:
        write_uvarint(counted, len(value) + 1)
    else:
        counted += len(value).to_bytes(4, "big")
    return bytes(counted) + b"".join(map(_bytes_with_unknown_tags, value))
