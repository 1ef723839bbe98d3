"""The most memory that a broker and the processes below it ever held, as the kernel has counted it (VmHWM).

VmHWM is the peak of resident memory of one process, shared libraries and mapped files included. It is read for every
process again and again until its end; Spark's workers outlive a pass, so that of these it is exact. Must not know what
the processes do beyond their roles.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from bench.family import PROC, family_of, parents

ROLES = ("broker", "engine", "java", "worker")
"""The engine and Java are Spark's driver. With workers goes the process that they are forked from."""
_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class PeakMemory:
    """Watches from entering to leaving."""

    process_id: int
    peaks: dict[str, int] = field(default_factory=dict)
    """Bytes of the largest process of each role."""
    processes: dict[str, set[int]] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> PeakMemory:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        for process_id in family_of(self.process_id, parents()):
            try:
                role = "broker" if process_id == self.process_id else _role_of(process_id)
                peak_bytes = _peak_bytes(process_id)
            except (OSError, LookupError):
                continue  # It has ended.
            self.peaks[role] = max(self.peaks.get(role, 0), peak_bytes)
            self.processes.setdefault(role, set()).add(process_id)


def _role_of(process_id: int) -> str:
    words = (PROC / str(process_id) / "cmdline").read_bytes().split(b"\0")
    if words[0].endswith(b"java"):
        return "java"
    if b"lamina.pipeline.daemon" in words:
        return "worker"
    return "engine" if b"lamina.pipeline" in words else "other"


def _peak_bytes(process_id: int) -> int:
    for line in (PROC / str(process_id) / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("it has ended")
