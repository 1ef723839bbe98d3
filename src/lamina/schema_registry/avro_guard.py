"""Which bytes are kept from fastavro: those that make it recurse until its stack ends, or count without an end.

fastavro is compiled code without such limits: a few bytes of a recursive schema end the process, and an array of
nulls may claim 2^62 of them. Only schemas in which one of the two can be are walked. Pure. Must not know values.
"""

from collections.abc import Mapping
from typing import Any

from lamina.schema_registry.errors import NotDecodable

MAX_DEPTH = 400
MAX_EMPTY_ITEMS = 1 << 16
MAX_FIELDS = 100_000
_SIZES = {"float": 4, "double": 8, "boolean": 1}
_VARINT_BYTES = 10


def is_dangerous(schema: Any, named: Mapping[str, Any]) -> bool:
    """Raises NotDecodable where a value without a byte would have too many fields."""
    shape = _Shape(named)
    if shape.fields(schema) > MAX_FIELDS:
        raise NotDecodable(f"its schema gives a record more than {MAX_FIELDS} fields")
    return shape.is_recursive or shape.has_empty_items


def walk(schema: Any, named: Mapping[str, Any], data: bytes) -> None:
    """Raises NotDecodable where the bytes are not of this schema, or are nested too deeply."""
    _Walk(named, data).value(schema, 0)


class _Walk:
    def __init__(self, named: Mapping[str, Any], data: bytes) -> None:
        self._named = named
        self._data = data
        self._at = 0
        self._items_left = max(len(data), MAX_EMPTY_ITEMS)

    def value(self, schema: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NotDecodable(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(schema, list):
            branch = self._number()
            if not 0 <= branch < len(schema):
                raise NotDecodable("it does not fit its schema: a union has no such branch")
            self.value(schema[branch], depth + 1)
            return
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in ("record", "error"):
            for field in schema["fields"]:
                self.value(field["type"], depth + 1)
        elif kind == "array":
            self._blocks(schema["items"], depth + 1, has_keys=False)
        elif kind == "map":
            self._blocks(schema["values"], depth + 1, has_keys=True)
        elif isinstance(kind, (dict, list)):
            self.value(kind, depth + 1)
        else:
            self._leaf(kind, schema)

    def _leaf(self, kind: str, schema: Any) -> None:
        if kind in ("string", "bytes"):
            self._skip(self._number())
        elif kind == "fixed":
            self._skip(schema["size"])
        elif kind in _SIZES:
            self._skip(_SIZES[kind])
        elif kind != "null":
            self._number()

    def _blocks(self, item: Any, depth: int, has_keys: bool) -> None:
        while count := self._number():
            if count < 0:
                self._number()
            self._items_left -= abs(count)
            if self._items_left < 0:
                raise NotDecodable(f"it does not fit its schema: it claims {abs(count)} items")
            for _ in range(abs(count)):
                if has_keys:
                    self._skip(self._number())
                self.value(item, depth)

    def _skip(self, count: int) -> None:
        if not 0 <= count <= len(self._data) - self._at:
            raise NotDecodable("it does not fit its schema: it ends too soon")
        self._at += count

    def _number(self) -> int:
        encoded = 0
        for place in range(_VARINT_BYTES):
            self._skip(1)
            byte = self._data[self._at - 1]
            encoded |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return (encoded >> 1) ^ -(encoded & 1)
        raise NotDecodable("it does not fit its schema: a number has no end")


class _Shape:
    """What a schema looks like; each named type is looked at once."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.is_recursive = False
        self.has_empty_items = False
        self._named = named
        self._seen: dict[str, tuple[int, bool] | None] = {}

    def fields(self, schema: Any) -> int:
        """How many values a value of this has at least, all of its records' fields included."""
        return self._look(schema)[0]

    def _look(self, schema: Any) -> tuple[int, bool]:
        """So many values, and whether they may take no byte at all."""
        name = schema if isinstance(schema, str) else schema.get("name") if isinstance(schema, dict) else None
        if not isinstance(name, str) or name not in self._named:
            return self._look_into(schema)
        if name in self._seen:
            found = self._seen[name]
            self.is_recursive |= found is None
            return (1, True) if found is None else found
        self._seen[name] = None
        found = self._seen[name] = self._look_into(self._named[name])
        return found

    def _look_into(self, schema: Any) -> tuple[int, bool]:
        if isinstance(schema, list):
            for each in schema:
                self._look(each)
            return 1, False
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in ("record", "error"):
            inside = [self._look(field["type"]) for field in schema["fields"]]
            return 1 + sum(count for count, _ in inside), all(is_empty for _, is_empty in inside)
        if kind in ("array", "map"):
            _, is_empty = self._look(schema["items" if kind == "array" else "values"])
            self.has_empty_items |= is_empty and kind == "array"
            return 1, False
        if isinstance(kind, (dict, list)):
            return self._look(kind)
        return 1, kind == "null" or (kind == "fixed" and schema["size"] == 0)
