"""How far a command is, for a person who watches: one line, or a bar where the size of the work is known.

Nothing is shown where standard error is not a terminal. Must not know what the work is.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from lamina.clocks import SYSTEM_CLOCKS, Clocks

if TYPE_CHECKING:
    from lamina.log.backup.copier import Step

T = TypeVar("T")

Advance = Callable[[int, int], None]
"""Told how much is done, and of how much."""

_EVERY_SECONDS = 0.2


class ProgressLine:
    def __init__(self, *, is_wanted: bool = True, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._clocks = clocks
        self._is_wanted = is_wanted and sys.stderr.isatty()
        self._is_drawn = False
        self._next = self._clocks.monotonic_seconds() + _EVERY_SECONDS

    def show(self, text: Callable[[], str]) -> None:
        """Often called, seldom shown; never for what is over in a moment."""
        if not self._is_wanted or (now := self._clocks.monotonic_seconds()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._is_drawn = True
        sys.stderr.write(f"\r\x1b[K{text()}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False


@contextmanager
def bar(title: str, *, of_bytes: bool = True) -> Iterator[Advance]:
    """Appears when work begins, and goes when it is done."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amounts = (DownloadColumn(), TransferSpeedColumn()) if of_bytes else (MofNCompleteColumn(),)
    columns = (title, BarColumn(), *amounts, TimeRemainingColumn())
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    task = shown.add_task("", total=None)

    def advance(done: int, total: int) -> None:
        shown.update(task, completed=done, total=total)
        if done < total:
            shown.start()
        else:
            shown.stop()

    try:
        yield advance
    finally:
        shown.stop()


def run_steps(title: str, begin: Callable[[Callable[[int], None]], "Generator[Step, None, T]"]) -> T:
    """Run to the end; ``begin`` is given what has to be told the total bytes, as soon as they are known."""
    done_bytes, total_bytes = 0, 0

    def plan(known_bytes: int) -> None:
        nonlocal total_bytes
        total_bytes = known_bytes

    steps = begin(plan)
    with bar(title) as advance:
        try:
            while True:
                done_bytes += next(steps).done_bytes
                advance(done_bytes, total_bytes)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            # Undoes what an interruption leaves.
            steps.close()
