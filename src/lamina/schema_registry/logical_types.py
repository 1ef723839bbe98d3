"""Whether a writer's and a reader's schema mean the same by their numbers: Avro's resolution does not look.

Owns which logical types there are. A long of milliseconds that is read as one of microseconds would be a wrong time,
and nobody would notice. Pure. Must not know bytes.
"""

from collections.abc import Mapping
from typing import Any

Named = Mapping[str, Any]

_BASES = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}


def logical_type(schema: Any) -> str | None:
    """Such as ``timestamp-millis``, or ``decimal(9,2)``; ``None`` where there is none, or none that stands here."""
    if not isinstance(schema, dict):
        return None
    name, base = schema.get("logicalType"), schema.get("type")
    if name == "decimal" and base in ("bytes", "fixed"):
        return f"decimal({schema.get('precision')},{schema.get('scale') or 0})"
    return name if isinstance(name, str) and _BASES.get(name) == base else None


def difference(writer: Any, reader: Any, named: tuple[Named, Named], path: str = "value") -> str | None:
    """Where the two differ, in words; both have been parsed, and `named` is of the writer and of the reader."""
    return _Comparison(named).difference(writer, reader, path)


class _Comparison:
    def __init__(self, named: tuple[Named, Named]) -> None:
        self._writers, self._readers = named
        self._compared: set[tuple[str, str]] = set()

    def difference(self, writer: Any, reader: Any, path: str) -> str | None:
        writer, reader = _resolved(writer, self._writers), _resolved(reader, self._readers)
        if isinstance(writer, list):
            return self._first((each, reader, path) for each in writer)
        if isinstance(reader, list):
            same = [each for each in reader if _kind(_resolved(each, self._readers)) == _kind(writer)]
            return self.difference(writer, same[0], path) if len(same) == 1 else None
        ours, theirs = logical_type(writer), logical_type(reader)
        if ours is not None and theirs is not None:
            return None if ours == theirs else f"{path} is {ours} in the writer's schema, and {theirs} in the reader's"
        kind = _kind(writer)
        if kind != _kind(reader):
            return None
        if kind in ("array", "map"):
            inside = "items" if kind == "array" else "values"
            return self.difference(writer[inside], reader[inside], path)
        return self._of_fields(writer, reader, path) if kind == "record" else None

    def _of_fields(self, writer: Any, reader: Any, path: str) -> str | None:
        pair = str(writer["name"]), str(reader["name"])
        if pair in self._compared:
            return None
        self._compared.add(pair)
        written = {field["name"]: field["type"] for field in writer["fields"]}
        return self._first(
            (written[name], field["type"], f"{path}.{field['name']}")
            for field in reader["fields"]
            for name in (field["name"], *field.get("aliases", ()))
            if name in written
        )

    def _first(self, pairs: Any) -> str | None:
        return next((found for pair in pairs if (found := self.difference(*pair)) is not None), None)


def _resolved(schema: Any, named: Named) -> Any:
    if isinstance(schema, str):
        return named.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema.get("type"), (dict, list)):
        return _resolved(schema["type"], named)
    return schema


def _kind(schema: Any) -> str | None:
    kind = schema.get("type") if isinstance(schema, dict) else schema
    return kind if isinstance(kind, str) else None
