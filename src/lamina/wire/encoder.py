"""Message → bytes, by a function compiled for each message version on first use.

kio writes field by field through a stream; a message of ten partitions costs it 70 µs and costs these
functions 8 (facts: protocol.md §3.3). Adjacent fields of fixed size go out in one `struct`, and everything
is appended to one `bytearray`. For a response with an array the compiled source reads like this:

    def encode(out, e):
        out += pack0(milliseconds(e.throttle_time), e.error_code)
        v = e.topics
        n = len(v) + 1
        if n < 128: out.append(n)
        else: write_uvarint(out, n)
        for x in v: encode1(out, x)
        out.append(0)

Byte-identical with kio's writer. Besides what the parser makes it takes plain `int` milliseconds for durations and
timestamps (-1: no timestamp), plain `int` error codes, and any buffer for bytes and records.
Must not know headers or frames.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache
from struct import Struct
from typing import Any, Final
from uuid import UUID

from lamina.wire.fields import FIXED_FORMATS, INTEGER_TYPES, Entity, Field, fields_of
from lamina.wire.primitives import write_uvarint

Encode = Callable[[bytearray, Any], None]
EncodeAround = Callable[[bytearray, Any, Sequence[bytes | bytearray]], None]

NO_TIMESTAMP_MS: Final = -1
_ZERO_UUID = bytes(16)
_MANY = 256


def milliseconds(value: timedelta | int) -> int:
    return value if isinstance(value, int) else round(value.total_seconds() * 1000)


def timestamp_ms(value: datetime | int | None) -> int:
    if value is None:
        return NO_TIMESTAMP_MS
    return value if isinstance(value, int) else round(value.timestamp() * 1000)


def uuid_bytes(value: UUID | None) -> bytes:
    return _ZERO_UUID if value is None else value.bytes


@lru_cache(maxsize=1024)
def array_packer(element_format: str, count: int) -> Callable[..., bytes]:
    return Struct(f">{count}{element_format}").pack


def tagged(tag: int, value: bytearray) -> bytearray:
    out = bytearray()
    write_uvarint(out, tag)
    write_uvarint(out, len(value))
    return out + value


_CONVERSIONS = {
    "uuid": "uuid_bytes({})",
    "timedelta_i32": "milliseconds({})",
    "timedelta_i64": "milliseconds({})",
    "datetime_i64": "timestamp_ms({})",
}
_NAMES: dict[str, Any] = {
    "write_uvarint": write_uvarint,
    "milliseconds": milliseconds,
    "timestamp_ms": timestamp_ms,
    "uuid_bytes": uuid_bytes,
    "pack_int16": Struct(">h").pack,
    "pack_int32": Struct(">i").pack,
    "array_packer": array_packer,
    "tagged": tagged,
}


@cache
def encoder_of(entity_type: type[Entity]) -> Encode:
    """The encoder of a message or of a structure inside one."""
    compiled: Encode = _Source(entity_type).compile("encode(out, e)")
    return compiled


@cache
def encoder_around(entity_type: type[Entity], array: str) -> EncodeAround:
    """An encoder whose elements of one array come encoded already, as a third argument."""
    compiled: EncodeAround = _Source(entity_type, encoded_array=array).compile("encode(out, e, encoded)")
    return compiled


class _Source:
    """Python source for one entity type, grown field by field."""

    def __init__(self, entity_type: type[Entity], encoded_array: str | None = None) -> None:
        self._entity_type = entity_type
        self._flexible = entity_type.__flexible__
        self._encoded_array = encoded_array
        self._names = dict(_NAMES)
        self._lines: list[str] = []
        self._fixed_format = ""
        self._fixed_values: list[str] = []

    def compile(self, signature: str) -> Any:
        fields = fields_of(self._entity_type)
        for field in fields:
            if field.tag is None:
                self._add(field)
        if self._flexible:
            self._add_tags(sorted((field for field in fields if field.tag is not None), key=_tag))
        self._flush_fixed()
        body = "\n ".join(self._lines) or "pass"
        exec(f"def {signature}:\n {body}", self._names)
        return self._names["encode"]

    def _add(self, field: Field) -> None:
        value = f"e.{field.name}"
        if field.fixed_format is not None:
            self._fixed_format += field.fixed_format
            self._fixed_values.append(_CONVERSIONS.get(field.wire_type, "{}").format(value))
            return
        self._flush_fixed()
        if field.name == self._encoded_array:
            # Joined, many would be copied twice, and no other thread would have its turn all that time.
            few = f"if len(encoded) < {_MANY}: out += b''.join(encoded)"
            self._lines += [*self._length("len(encoded)", "array"), few, "else:", "  for x in encoded: out += x"]
            return
        self._lines.append(f"v = {value}")
        self._lines += self._variable(field, nullable=field.nullable)

    def _flush_fixed(self) -> None:
        if self._fixed_format:
            pack = self._name("pack", Struct(">" + self._fixed_format).pack)
            self._lines.append(f"out += {pack}({', '.join(self._fixed_values)})")
            self._fixed_format = ""
            self._fixed_values = []

    def _add_tags(self, tagged: Sequence[Field]) -> None:
        """Tagged fields that have their default are left out (KIP-482); with none to look at, the section is
        a zero byte, which rides on the fixed fields before it if there are any."""
        if not tagged:
            if self._fixed_format:
                self._fixed_format += "x"
            else:
                self._lines.append("out.append(0)")
            return
        self._flush_fixed()
        self._lines += ["whole = out", "count = 0", "tags = b''"]
        for field in tagged:
            default = self._name("default", field.default)
            self._lines += [
                f"v = e.{field.name}",
                f"if v is not {default} and v != {default}:",
                "  out = bytearray()",
                *("  " + line for line in self._tag_value(field)),
                "  count += 1",
                f"  tags += tagged({field.tag}, out)",
            ]
        self._lines += ["whole.append(count)", "whole += tags"]

    def _tag_value(self, field: Field) -> list[str]:
        """Lines that write `v`. A tagged field is null by being left out, so what is written never is."""
        if field.fixed_format is None:
            return self._variable(field, nullable=False)
        pack = self._name("pack", Struct(">" + field.fixed_format).pack)
        return [f"out += {pack}({_CONVERSIONS.get(field.wire_type, '{}').format('v')})"]

    def _variable(self, field: Field, *, nullable: bool) -> list[str]:
        """Lines that write `v`."""
        if field.wire_type == "entity" and not field.is_array:
            return self._nested(field, nullable)
        lines = self._array(field) if field.is_array else self._blob(field)
        if not nullable:
            return lines
        null = "out.append(0)" if self._flexible else f"out += {_pack_length(field)}(-1)"
        return [f"if v is None: {null}", "else:", *("  " + line for line in lines)]

    def _nested(self, field: Field, nullable: bool) -> list[str]:
        encode = self._encoder(field)
        if not nullable:
            return [f"{encode}(out, v)"]
        # KIP-893: one byte says whether a nullable structure is there.
        return ["if v is None: out.append(255)", "else:", "  out.append(1)", f"  {encode}(out, v)"]

    def _array(self, field: Field) -> list[str]:
        lines = self._length("len(v)", "array")
        if field.wire_type == "entity":
            return [*lines, f"for x in v: {self._encoder(field)}(out, x)"]
        if field.wire_type in INTEGER_TYPES:
            fmt = FIXED_FORMATS[field.wire_type]
            return [*lines, f"if v: out += array_packer('{fmt}', len(v))(*v)"]
        if field.wire_type in FIXED_FORMATS:
            pack = self._name("pack", Struct(">" + FIXED_FORMATS[field.wire_type]).pack)
            element = _CONVERSIONS.get(field.wire_type, "{}").format("x")
            return [*lines, f"for x in v: out += {pack}({element})"]
        return [*lines, "for v in v:", *("  " + line for line in self._blob(field))]

    def _blob(self, field: Field) -> list[str]:
        encoded = ["v = v.encode()"] if field.wire_type == "string" else []
        return [*encoded, *self._length("len(v)", field.wire_type), "out += v"]

    def _length(self, expression: str, wire_type: str) -> list[str]:
        if not self._flexible:
            return [f"out += {'pack_int16' if wire_type == 'string' else 'pack_int32'}({expression})"]
        return [f"n = {expression} + 1", "if n < 128: out.append(n)", "else: write_uvarint(out, n)"]

    def _encoder(self, field: Field) -> str:
        assert field.entity is not None
        return self._name("encode", encoder_of(field.entity))

    def _name(self, stem: str, value: object) -> str:
        name = f"{stem}{len(self._names)}"
        self._names[name] = value
        return name


def _tag(field: Field) -> int:
    assert field.tag is not None
    return field.tag


def _pack_length(field: Field) -> str:
    return "pack_int16" if field.wire_type == "string" and not field.is_array else "pack_int32"
