"""Which columns can be written, and as what.

Owns their names and types, which are those of Spark's own Kafka sink; other columns are left out, as there, but one
that was probably meant to be written is refused. Pure.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
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
_SIMILARITY: Final = 0.8


def check_columns(columns: Sequence[tuple[str, str]], topic: str | None) -> None:
    """Names and Spark's simple types of the columns. Raises `WriteError` for what cannot be written."""
    kinds = dict(columns)
    if topic is None and "topic" not in kinds:
        raise WriteError("no topic is given: set the option topic, or add a column topic")
    if "value" not in kinds:
        among = ", ".join(kinds) or "the columns"
        raise WriteError(f"a column value is needed; it is not among {among}{_question('value', kinds)}")
    for name in WRITABLE:
        if name not in kinds and not (name == "topic" and topic is not None) and (meant := _question(name, kinds)):
            raise WriteError(f"there is no column {name}{meant} Rename or drop that one: it would not be written")
    for name, kind in kinds.items():
        if [other for other, _ in columns].count(name) > 1 and name in WRITABLE:
            raise WriteError(f"two columns are called {name}; drop one of them")
        if name in WRITABLE and kind not in WRITABLE[name]:
            raise WriteError(f"column {name} is of type {kind}; it must be {' or '.join(WRITABLE[name])}")


def _question(missing: str, names: Iterable[str]) -> str:
    """Of a column that is not there: under which name it was probably given."""
    others = {name.lower(): name for name in names if name not in WRITABLE}
    close = get_close_matches(missing, others, 1, _SIMILARITY)
    return f", but one called {others[close[0]]}: is that meant?" if close else ""
