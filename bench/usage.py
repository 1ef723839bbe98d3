"""What processes and all below them use: CPU time and resident memory, as the kernel counts them.

Lamina's engine, its JVM and its workers are below the broker; a Kafka is one process; a cluster has one for each broker
and its ZooKeeper. Memory is the sum of the processes' resident pages: those that two of them share count twice.
Must not know what they do.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from bench.family import PROC, families_of

_LOOK_SECONDS = 0.25
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(*process_ids: int) -> float:
    """Of all that run now, and of those that ended and were waited for."""
    ticks = 0
    for member in families_of(process_ids):
        try:
            fields = (PROC / str(member) / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # It has ended.
        ticks += sum(int(number) for number in fields[11:15])
    return ticks / _TICKS_PER_SECOND


def resident_bytes(*process_ids: int) -> int:
    pages = 0
    for member in families_of(process_ids):
        try:
            pages += int((PROC / str(member) / "statm").read_text().split()[1])
        except OSError:
            continue  # It has ended.
    return pages * resource.getpagesize()


@dataclass(slots=True)
class Usage:
    """From entering to leaving."""

    process_ids: Sequence[int]
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    """The most memory that all of them held at a time; looked at four times a second."""
    _counted_seconds: float = 0.0
    """What the processes had used at the last look."""
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Usage:
        self._counted_seconds = cpu_seconds(*self.process_ids)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()
        self._count()

    def _count(self) -> None:
        """What ended and was not waited for, as Spark's Python workers, takes its time out of the sum: it was spent."""
        counted = cpu_seconds(*self.process_ids)
        self.cpu_seconds += max(0.0, counted - self._counted_seconds)
        self._counted_seconds = counted

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(*self.process_ids))
            self._count()
            if self._is_over.wait(_LOOK_SECONDS):
                return
