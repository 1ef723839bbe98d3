"""Amounts, times and bytes as text for a person.

Must not know where the text goes.
"""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

from lamina.cli.printing.tables import Value

MANY_RECORDS = 1000
"""From here on a summary says how large the records were and how long they took."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("kB", "MB", "GB", "TB")


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


def ago_text(past_ms: int) -> str:
    """How long ago something was, in the largest unit of which there is one at least."""
    seconds = max(0, past_ms) // 1000
    for unit, unit_seconds in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= unit_seconds:
            return f"{seconds // unit_seconds}{unit} ago"
    return f"{seconds}s ago"


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


def bytes_text(size_bytes: float) -> str:
    """In powers of 1000, as disks and networks count."""
    if size_bytes < 1000:
        whole = f"{size_bytes:.0f}"
        return f"{whole} byte" if whole == "1" else f"{whole} bytes"
    for unit in _UNITS:
        size_bytes /= 1000
        if size_bytes < 999.95 or unit == _UNITS[-1]:
            break
    return f"{size_bytes:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def rate_text(records: int, size_bytes: int, seconds: float) -> str:
    return f"{per_second(records, seconds):,.0f} records/s, {bytes_text(per_second(size_bytes, seconds))}/s"


def per_second(amount: int, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def offsets_text(start: int, end: int) -> str:
    """A half-open range as a person says it."""
    return str(start) if end - start == 1 else f"{start}-{end - 1}"
