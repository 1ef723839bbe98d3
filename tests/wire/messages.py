"""Random messages of every version, and what kio's own writer makes of them."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.serial._serialize import get_field_writer
from kio.static.protocol import Entity

from lamina.wire.fields import Field, fields_of
from lamina.wire.primitives import write_uvarint
from lamina.wire.versions import request_schema, response_schema

OFFERED = {
    0: (3, 12),
    1: (4, 17),
    2: (1, 9),
    3: (0, 13),
    8: (2, 9),
    9: (1, 9),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    32: (1, 4),
    33: (0, 2),
    35: (1, 4),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    44: (0, 1),
    47: (0, 0),
    60: (0, 2),
    68: (0, 1),
    69: (0, 1),
}
"""API key → first and last version: the ranges of protocol.md §2.4, with SASL, KIP-848 and markers."""

REQUESTS = [(key, version) for key, (first, last) in OFFERED.items() for version in range(first, last + 1)]


def schemas() -> list[type[Entity]]:
    """Every request and every response of the offered versions."""
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


def kio_bytes(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


UNKNOWN_TAGS = ((4000, b"\xff\xff\xff"), (2**31 - 1, b""))


def bytes_with_unknown_tags(entity: Any) -> bytes:
    """As `kio_bytes`, with two tags that no schema has at the end of every structure at every depth."""
    out = bytearray()
    tags: dict[int, bytes] = {}
    flexible = type(entity).__flexible__
    for field, raw in zip(fields_of(type(entity)), dataclasses.fields(entity), strict=True):
        value = getattr(entity, field.name)
        encoded = _field_bytes(field, raw, value, flexible)
        if field.tag is None:
            out += encoded
        elif value != field.default:
            tags[field.tag] = encoded
    if flexible:
        tags.update(UNKNOWN_TAGS)
        write_uvarint(out, len(tags))
        for tag, encoded in sorted(tags.items()):
            write_uvarint(out, tag)
            write_uvarint(out, len(encoded))
            out += encoded
    return bytes(out)


def _field_bytes(field: Field, raw: Any, value: Any, flexible: bool) -> bytes:
    if field.entity is None or value is None:
        if field.tag is not None and value is None:
            return b""
        out = io.BytesIO()
        get_field_writer(raw, flexible, is_request_header=False, is_tag=field.tag is not None)(out, value)
        return out.getvalue()
    if not field.is_array:
        marker = b"\x01" if field.nullable and field.tag is None else b""
        return marker + bytes_with_unknown_tags(value)
    counted = bytearray()
    if flexible:
        write_uvarint(counted, len(value) + 1)
    else:
        counted += len(value).to_bytes(4, "big")
    return bytes(counted) + b"".join(map(bytes_with_unknown_tags, value))
