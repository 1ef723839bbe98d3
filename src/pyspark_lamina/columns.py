"""A row's columns, as Spark's own Kafka source names and types them, and which of them are wanted.

Owns the schema, and what may stand in ``.schema(…)``: any of the columns, in any order, with their types. Must not know
how a column is filled.
"""

from collections.abc import Sequence

from lamina.arrow.errors import ReadError

INCLUDE_HEADERS = "includeHeaders"

_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_HEADERS = {"headers": "array<struct<key:string,value:binary>>"}
_ALL = _TYPES | _HEADERS
"""Types in the words of Spark's ``simpleString``."""


def row_schema(*, with_headers: bool) -> str:
    """As DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in (_ALL if with_headers else _TYPES).items())


def wanted_columns(fields: Sequence[tuple[str, str]]) -> list[str]:
    """The names in a schema, given with their types. Raises `ReadError`, one sentence, for what is no column."""
    if not fields:
        raise ReadError(f"the schema has no column; name some of {', '.join(_ALL)}")
    for name, kind in fields:
        if name not in _ALL:
            raise ReadError(f"the schema has a column {name!r}, and there are only {', '.join(_ALL)}")
        if kind != _ALL[name]:
            raise ReadError(f"column {name} is {_ALL[name]}, not {kind}; cast it after it was read")
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        raise ReadError(f"the schema names a column twice: {', '.join(names)}")
    return names
