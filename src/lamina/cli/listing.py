"""What a dumped file gives: rows with a type, and how each is shown in a table.

Must not know any file format.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lamina.cli.output import Row, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Unreadable(Exception):
    """From here on the file cannot be read; the sentence says where and why. Rows before it stand."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one type. They may end with :class:`Unreadable`."""

    row_type: str
    """What a row is, as JSON names it."""
    columns: tuple[tuple[str, Callable[[Row], str]], ...]
    rows: Iterator[Row]


def column(heading: str, key: str = "") -> tuple[str, Callable[[Row], str]]:
    """A column that shows one value as it is; the key is the heading with underscores unless given."""
    name = key or heading.replace(" ", "_")
    return heading, lambda row: cell(row[name])


def cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def time_text(timestamp_ms: int) -> str | None:
    """A timestamp as ISO 8601 in UTC; ``None`` for none, or one that no calendar holds."""
    if timestamp_ms < 0:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def readable(data: bytes | None) -> tuple[str | None, str | None]:
    """Bytes for JSON: the text and ``text``, or base64 and ``base64`` where they are no printable text."""
    if data is None:
        return None, None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and (text.isprintable() or all(char.isprintable() or char in "\n\t\r" for char in text)):
        return text, "text"
    return b64encode(data).decode(), "base64"
