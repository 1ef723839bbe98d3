"""A row's columns, as Spark's own Kafka source names and types them, and which of them are wanted.

Owns the schema, and what may stand in ``.schema(…)``: any of the columns, in any order, with their types. Must not know
how a column is filled.
"""

from collections.abc import Sequence
from typing import NamedTuple

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


class Field(NamedTuple):
    """Of the schema that a query is to have."""

    name: str
    kind: str
    may_be_null: bool = True


def wanted_columns(fields: Sequence[Field]) -> list[Field]:
    """The fields, which are columns. Raises `ReadError`, one sentence, where they are not."""
    if not fields:
        raise ReadError(f"the schema has no column; name some of {', '.join(_ALL)}")
    for field in fields:
        if field.name not in _ALL:
            raise ReadError(f"the schema has a column {field.name!r}, and there are only {', '.join(_ALL)}")
        if field.kind != _ALL[field.name]:
            raise ReadError(f"column {field.name} is {_ALL[field.name]}, not {field.kind}; cast it after it was read")
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise ReadError(f"the schema names a column twice: {', '.join(names)}")
    return list(fields)
