"""What processes and all below them use: CPU time and resident memory, as the kernel counts them.

Lamina's engine, its JVM and its workers are below the broker; a Kafka is one process; a cluster has one for each broker
and its ZooKeeper. Memory is the sum of the processes' resident pages: those that two of them share count twice.
Must not know what they do.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

from bench.family import PROC, families_of

_LOOK_SECONDS = 0.25
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessId(NamedTuple):
    """The kernel gives a number to another process later: this one is never given again."""

    number: int
    started_at_tick: int


class Spent(NamedTuple):
    """CPU time of a process, in ticks of the kernel's clock."""

    parent: int
    own: int
    of_ended: int
    """Of those below it that ended and were waited for."""

    @property
    def ticks(self) -> int:
        return self.own + self.of_ended


def cpu_seconds(*process_ids: int) -> float:
    """Of all that run now, and of those that ended and were waited for."""
    return sum(each.ticks for each in _spent(process_ids).values()) / _TICKS_PER_SECOND


def resident_bytes(*process_ids: int) -> int:
    pages = 0
    for member in families_of(process_ids):
        try:
            pages += int((PROC / str(member) / "statm").read_text().split()[1])
        except OSError:
            continue  # It has ended.
    return pages * resource.getpagesize()


def _spent(process_ids: Sequence[int]) -> dict[ProcessId, Spent]:
    found = {}
    for member in families_of(process_ids):
        try:
            fields = (PROC / str(member) / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # It has ended.
        parent, own_user, own_system, ended_user, ended_system, started = (
            int(fields[place]) for place in (1, 11, 12, 13, 14, 19)
        )
        found[ProcessId(member, started)] = Spent(parent, own_user + own_system, ended_user + ended_system)
    return found


def ticks_between(before: Mapping[ProcessId, Spent], after: Mapping[ProcessId, Spent]) -> int:
    """What was spent between two looks.

    Who has ended since keeps what it had at the first look. If it was waited for, the kernel has given its whole time
    to its parent meanwhile, who is credited only with what was not counted before. If it was not, its last moments are
    lost, and nothing else.
    """
    numbers = {process.number: process for process in before}
    counted_before: dict[ProcessId, int] = {}
    for process in before.keys() - after.keys():
        heir = process
        while heir not in after and before[heir].parent in numbers:
            heir = numbers[before[heir].parent]
        counted_before[heir] = counted_before.get(heir, 0) + before[process].ticks
    ticks = 0
    for process, now in after.items():
        then = before.get(process, Spent(0, 0, 0))
        inherited = now.of_ended - then.of_ended - counted_before.get(process, 0)
        ticks += now.own - then.own + max(0, inherited)
    return ticks


@dataclass(slots=True)
class Usage:
    """From entering to leaving."""

    process_ids: Sequence[int]
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    """The most memory that all of them held at a time; looked at four times a second."""
    _last: Mapping[ProcessId, Spent] = field(default_factory=dict)
    """What each process had used at the last look."""
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Usage:
        self._last = _spent(self.process_ids)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()
        self._count()

    def _count(self) -> None:
        now = _spent(self.process_ids)
        self.cpu_seconds += ticks_between(self._last, now) / _TICKS_PER_SECOND
        self._last = now

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(*self.process_ids))
            self._count()
            if self._is_over.wait(_LOOK_SECONDS):
                return
