"""Bytes → message, by a function compiled for each message version on first use.

Leans on Python's own bounds checks: an index or a `struct` past the end raises, a slice past the end moves
the position past the end, and both are noticed when the position is compared with the length at the last
byte. So a field costs one read, and no length or count is believed before the bytes are there. Counts are
charged to the message's budget (`MAX_ELEMENTS`). For a request with an array the compiled source reads like
this:

    def parse(data, at, budget):
        (timeout,) = unpack0(data, at)
        at += 4
        n = data[at]
        if n < 128: at += 1
        else: n, at = read_uvarint(data, at)
        if n == 0: raise null('topics')
        budget[0] -= n
        if budget[0] < 0: raise too_many_elements()
        topics = []
        for _ in range(n - 1):
            x, at = parse1(data, at, budget)
            topics.append(x)
        ...
        e = new(entity_type)
        set0(e, duration(timeout))
        set1(e, tuple(topics))
        return e, at

The entity is filled through its slots, past its own `__init__`.
Unknown tagged fields are ignored, as KIP-482 demands. Must not know headers or frames.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from struct import Struct
from typing import Any
from uuid import UUID

from lamina.errors import ErrorCode
from lamina.wire.fields import FIXED_FORMATS, INTEGER_TYPES, Entity, Field, fields_of, setter_of
from lamina.wire.primitives import (
    MAX_STRING_BYTES,
    MalformedRequest,
    read_tags,
    read_uvarint,
    too_long,
    too_many_elements,
)

Parse = Callable[[bytes, int, list[int]], tuple[Any, int]]

_ERROR_CODES: dict[int, ErrorCode] = {code.value: code for code in ErrorCode}
_UUID_BYTES = 16
_ZERO_UUID = bytes(_UUID_BYTES)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def duration(value_ms: int) -> timedelta:
    """ "For ever" is often the largest number of milliseconds, more than a `timedelta` holds."""
    try:
        return timedelta(milliseconds=value_ms)
    except OverflowError:
        return timedelta.max if value_ms > 0 else timedelta.min


@lru_cache(maxsize=4096)
def uuid(value: bytes) -> UUID | None:
    return None if value == _ZERO_UUID else UUID(bytes=value)


def read_uuid(data: bytes | memoryview, at: int) -> tuple[UUID | None, int]:
    """(value, where the next field starts)."""
    value = bytes(data[at : at + _UUID_BYTES])
    if len(value) < _UUID_BYTES:
        raise IndexError
    return uuid(value), at + _UUID_BYTES


def error_code(value: int) -> ErrorCode | int:
    """A code that Lamina never gives stays a number: another broker may answer it."""
    return _ERROR_CODES.get(value, value)


def timestamp(value_ms: int) -> datetime | None:
    """Whole seconds, as in kio; the rest is cut off."""
    return None if value_ms == -1 else _EPOCH + timedelta(seconds=value_ms // 1000)


@lru_cache(maxsize=1024)
def array_unpacker(element_format: str, count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    return Struct(f">{count}{element_format}").unpack_from


def null(field: str) -> MalformedRequest:
    return MalformedRequest(f"{field} is null.")


def negative(field: str) -> MalformedRequest:
    return MalformedRequest(f"{field} has a negative length.")


def parse_start(parse: Parse, data: bytes, budget: list[int]) -> Any:
    """The value that these bytes begin with."""
    value, at = parse(data, 0, budget)
    if at > len(data):
        raise IndexError
    return value


def parse_whole(parse: Parse, data: bytes, budget: list[int]) -> Any:
    """The value that takes exactly these bytes."""
    value, at = parse(data, 0, budget)
    if at > len(data):
        raise IndexError
    if at < len(data):
        raise MalformedRequest(f"{len(data) - at} bytes follow its last field.")
    return value


_CONVERSIONS = {
    "uuid": "uuid({})",
    "error_code": "error_code({})",
    "timedelta_i32": "duration({})",
    "timedelta_i64": "duration({})",
    "datetime_i64": "timestamp({})",
}
_NAMES: dict[str, Any] = {
    "read_uvarint": read_uvarint,
    "read_tags": read_tags,
    "parse_whole": parse_whole,
    "array_unpacker": array_unpacker,
    "uuid": uuid,
    "error_code": error_code,
    "duration": duration,
    "timestamp": timestamp,
    "null": null,
    "negative": negative,
    "too_long": too_long,
    "too_many_elements": too_many_elements,
    "new": object.__new__,
    "unpack_int16": Struct(">h").unpack_from,
    "unpack_int32": Struct(">i").unpack_from,
}


@cache
def parser_of(entity_type: type[Entity]) -> Parse:
    """The parser of a message or of a structure inside one: (data, at, budget) → (entity, at)."""
    source = _Source(entity_type.__flexible__)
    source.add_fields(entity_type)
    return source.compile("e")


def _parser_of_tag(field: Field) -> Parse:
    source = _Source(flexible=True)
    source.add(field)
    return source.compile(source.value_of(field))


class _Source:
    """Python source for one parser, grown field by field. Each field becomes a local variable of its name."""

    def __init__(self, flexible: bool) -> None:
        self._flexible = flexible
        self._names = dict(_NAMES)
        self._lines: list[str] = []
        self._fixed: list[Field] = []

    def compile(self, result: str) -> Parse:
        self._flush_fixed()
        lines = "\n ".join([*self._lines, f"return {result}, at"])
        exec(f"def parse(data, at, budget):\n {lines}", self._names)
        parse: Parse = self._names["parse"]
        return parse

    def name(self, stem: str, value: object) -> str:
        name = f"{stem}{len(self._names)}"
        self._names[name] = value
        return name

    def value_of(self, field: Field) -> str:
        variable = f"f_{field.name}"
        return variable if field.is_array else _CONVERSIONS.get(field.wire_type, "{}").format(variable)

    def add_fields(self, entity_type: type[Entity]) -> None:
        """Reads all fields and makes the entity `e` of them."""
        fields = fields_of(entity_type)
        for field in fields:
            if field.tag is None:
                self.add(field)
        self._flush_fixed()
        if self._flexible:
            self._add_tags([field for field in fields if field.tag is not None])
        self._lines.append(f"e = new({self.name('entity_type', entity_type)})")
        for field in fields:
            put = self.name("set", setter_of(entity_type, field))
            value = self.value_of(field) if field.tag is None else f"f_{field.name}"
            self._lines.append(f"{put}(e, {value})")

    def add(self, field: Field) -> None:
        if field.fixed_format is not None:
            self._fixed.append(field)
            return
        self._flush_fixed()
        if field.is_array:
            self._lines += self._array(field)
        elif field.entity is not None:
            self._lines += self._nested(field)
        else:
            self._lines += self._blob(field, f"f_{field.name}", nullable=field.nullable)

    def _flush_fixed(self) -> None:
        if self._fixed:
            struct = Struct(">" + "".join(field.fixed_format or "" for field in self._fixed))
            unpack = self.name("unpack", struct.unpack_from)
            variables = "".join(f"f_{field.name}, " for field in self._fixed)
            self._lines += [f"{variables} = {unpack}(data, at)", f"at += {struct.size}"]
            self._fixed = []

    def _add_tags(self, tagged: Sequence[Field]) -> None:
        self._lines += [f"f_{field.name} = {self.name('default', field.default)}" for field in tagged]
        self._lines += ["if data[at] == 0: at += 1", "else:", "  tags, at = read_tags(data, at, budget)"]
        for field in tagged:
            parse = self.name("parse_tag", _parser_of_tag(field))
            self._lines += [
                f"  if {field.tag} in tags:",
                f"    f_{field.name} = parse_whole({parse}, tags[{field.tag}], budget)",
            ]

    def _nested(self, field: Field) -> list[str]:
        read = f"f_{field.name}, at = {self._parser(field)}(data, at, budget)"
        if not field.nullable or field.tag is not None:
            return [read]
        # KIP-893: one signed byte says whether a nullable structure is there.
        return [f"f_{field.name} = None", "at += 1", "if data[at - 1] < 128:", f"  {read}"]

    def _array(self, field: Field) -> list[str]:
        variable = f"f_{field.name}"
        lines = [
            *self._length("array"),
            *self._when_absent(field.name, variable, nullable=field.nullable),
            "else:",
            "  budget[0] -= n",
            "  if budget[0] < 0: raise too_many_elements()",
        ]
        if field.wire_type in INTEGER_TYPES:
            fmt = FIXED_FORMATS[field.wire_type]
            size = Struct(">" + fmt).size
            # The budget has bounded n, so that the format is never a large one.
            return [*lines, f"  {variable} = array_unpacker('{fmt}', n)(data, at)", f"  at += {size} * n"]
        return [
            *lines,
            f"  {variable} = []",
            "  for _ in range(n):",
            *("    " + line for line in self._element(field)),
            f"    {variable}.append(x)",
            f"  {variable} = tuple({variable})",
        ]

    def _element(self, field: Field) -> list[str]:
        """Lines that read `x`."""
        if field.entity is not None:
            return [f"x, at = {self._parser(field)}(data, at, budget)"]
        if field.wire_type in FIXED_FORMATS:
            struct = Struct(">" + FIXED_FORMATS[field.wire_type])
            unpack = self.name("unpack", struct.unpack_from)
            value = _CONVERSIONS.get(field.wire_type, "{}").format("x")
            return [f"x, = {unpack}(data, at)", f"at += {struct.size}", f"x = {value}"]
        return self._blob(field, "x", nullable=False)

    def _blob(self, field: Field, variable: str, *, nullable: bool) -> list[str]:
        decoded = ".decode()" if field.wire_type == "string" else ""
        return [
            *self._length(field.wire_type),
            *self._when_absent(field.name, variable, nullable=nullable),
            "else:",
            f"  {variable} = data[at:at + n]{decoded}",
            "  at += n",
        ]

    def _length(self, wire_type: str) -> list[str]:
        """Lines that read `n`; null is -1 whatever the encoding."""
        if self._flexible:
            lines = ["n = data[at] - 1", "if n < 127: at += 1", "else:", "  n, at = read_uvarint(data, at)", "  n -= 1"]
            if wire_type == "string":
                lines.append(f"  if n > {MAX_STRING_BYTES}: raise too_long()")
            return lines
        width = 2 if wire_type == "string" else 4
        return [f"n, = unpack_int{width * 8}(data, at)", f"at += {width}"]

    def _when_absent(self, name: str, variable: str, *, nullable: bool) -> list[str]:
        """The `if` branch for a length below zero."""
        raising = f"raise null({name!r}) if n == -1 else negative({name!r})"
        if not nullable:
            return [f"if n < 0: {raising}"]
        return ["if n < 0:", f"  if n != -1: raise negative({name!r})", f"  {variable} = None"]

    def _parser(self, field: Field) -> str:
        assert field.entity is not None
        return self.name("parse", parser_of(field.entity))
