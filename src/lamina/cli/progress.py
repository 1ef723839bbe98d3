"""One line on a terminal that says how far a command is, and how amounts are written for a person.

Elsewhere than on a terminal nothing is shown. Must not know any command.
"""

import sys
import time
from collections.abc import Callable

MANY_RECORDS = 1000
"""From here on a summary says how large the records were and how long they took."""
_EVERY_SECONDS = 0.2
_UNITS = ("kB", "MB", "GB", "TB")


class Progress:
    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._next = 0.0

    def show(self, text: Callable[[], str]) -> None:
        """Often called, seldom shown."""
        if not self._is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        sys.stderr.write(f"\r\x1b[K{text()}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown and self._next:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._next = 0.0


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
