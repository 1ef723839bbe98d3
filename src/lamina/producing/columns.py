"""Which columns can be written, and as what.

Owns their names and types, which are those of Spark's own Kafka sink; other columns are left out, as there. Pure.
"""

from collections.abc import Sequence
from typing import Final

from lamina.producing.errors import WriteError

WRITABLE: Final = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""By name: Spark's simple types."""


def check_columns(columns: Sequence[tuple[str, str]], topic: str | None) -> None:
    """Names and Spark's simple types of the columns. Raises `WriteError` for what cannot be written."""
    kinds = dict(columns)
    if topic is None and "topic" not in kinds:
        raise WriteError("no topic is given: set the option topic, or add a column topic")
    if "value" not in kinds:
        raise WriteError("a column value is needed; it is not among " + (", ".join(kinds) or "the columns"))
    for name, kind in kinds.items():
        if [other for other, _ in columns].count(name) > 1 and name in WRITABLE:
            raise WriteError(f"two columns are called {name}; drop one of them")
        if name in WRITABLE and kind not in WRITABLE[name]:
            raise WriteError(f"column {name} is of type {kind}; it must be {' or '.join(WRITABLE[name])}")
