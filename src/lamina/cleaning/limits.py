"""What a pass may take from the machine that it shares with the broker.

Owns three limits: bytes a second (fact 97: bytes read to find keys, read to copy and written, together), in one process
or, through a file, in all processes of one machine; free disk space; and the priority of a job's process. Must not know
what the bytes are.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from threading import Lock
from typing import Protocol

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import NotEnoughFreeSpace
from lamina.clocks import SYSTEM_CLOCKS, pause
from lamina.log.files import Disk

_EVALUATED_AFTER_SECONDS = 0.3
_NICENESS = 10

Meter = Callable[[int], None]
"""Told the bytes of every piece of work before the next is begun: may wait, and may raise to end the pass."""


def unmetered(_size_bytes: int) -> None:
    """No limit, and nothing that ends the pass."""


class Ledger(Protocol):
    """The time until which the bytes that were spent so far last, at the limit."""

    def spend(self, seconds: float, since: float) -> float:
        """Add bytes that last ``seconds``, from ``since`` at the earliest. Returns until when all last."""


class OwnLedger:
    """Of one process."""

    def __init__(self) -> None:
        self._until = 0.0

    def spend(self, seconds: float, since: float) -> float:
        self._until = max(self._until, since) + seconds
        return self._until


class FileLedger:
    """Of all processes of one machine that name the same file; they have the same monotonic clock."""

    _UNTIL = Struct("=d")

    def __init__(self, path: str) -> None:
        self._path = path

    def spend(self, seconds: float, since: float) -> float:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            said = os.pread(file, self._UNTIL.size, 0)
            before = self._UNTIL.unpack(said)[0] if len(said) == self._UNTIL.size else 0.0
            until: float = max(before, since) + seconds
            os.pwrite(file, self._UNTIL.pack(until), 0)
            return until
        finally:
            os.close(file)


class Throttle:
    """Sleeps just enough to keep the average of each interval at the limit; may be shared by threads."""

    def __init__(
        self,
        bytes_per_second: float,
        ledger: Ledger | None = None,
        *,
        clock: Callable[[], float] = SYSTEM_CLOCKS.monotonic_seconds,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._ledger = ledger or OwnLedger()
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._since = clock()
        self._bytes = 0
        self.slept_seconds = 0.0

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._bytes += size_bytes
            if self._clock() - self._since >= _EVALUATED_AFTER_SECONDS:
                self._evaluate()

    def finish(self) -> float:
        """Count what was spent since the last interval too, because many small logs are a large one.

        Returns how long it slept in all.
        """
        with self._lock:
            self._evaluate()
            return self.slept_seconds

    def _evaluate(self) -> None:
        until = self._ledger.spend(self._bytes / self._bytes_per_second, self._since)
        wait = until - self._clock()
        if wait > 0:
            self._sleep(wait)
            self.slept_seconds += wait
        self._since = self._clock()
        self._bytes = 0


def throttle_of(plan: Plan) -> Throttle | None:
    """What keeps one process to the limit of a plan; ``None`` where there is none."""
    rate = plan.throttle_bytes_per_second
    if rate is None:
        return None
    return Throttle(rate, None if plan.throttle_path is None else FileLedger(plan.throttle_path))


def check_free_space(disk: Disk, plan: Plan, size_bytes: int) -> None:
    """Raises :class:`NotEnoughFreeSpace` if writing so much would leave too little free.

    There was enough when the pass was planned; a pass must not take the last space that others need meanwhile.
    """
    free_bytes = disk.free_bytes(plan.pass_folder)
    if free_bytes - size_bytes < plan.keep_free_bytes:
        raise NotEnoughFreeSpace(
            f"the disk of {plan.directory} became too full for the pass: {free_bytes} bytes are free, and "
            f"{plan.keep_free_bytes} must stay free (lamina.disk.free.min.bytes)"
        )


def lower_priority() -> None:
    """Take the processor only where the broker leaves it, and be killed first when memory is short.

    Holds for this process and those that it will start. Linux shares the processor among sessions first where
    autogroups are on, so the session gets the same niceness. A service manager may protect the broker from the
    out-of-memory killer, and this process would inherit that.
    """
    os.nice(_NICENESS)
    for path, value in (("/proc/self/autogroup", str(_NICENESS)), ("/proc/self/oom_score_adj", "500")):
        with suppress(OSError), open(path, "w") as file:
            file.write(value)
