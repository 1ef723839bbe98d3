"""The files of a log that were renamed away and wait to be removed (``file.delete.delay.ms``).

Owns which they are and when they are due. Must not know who removes them, nor how.
"""

from typing import NamedTuple


class _PendingDelete(NamedTuple):
    due_ms: int
    paths: list[str]


class PendingDeletes:
    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: list[_PendingDelete] = []

    def add(self, paths: list[str], due_ms: int) -> None:
        self._pending.append(_PendingDelete(due_ms, paths))

    def take_due(self, now_ms: int) -> list[str]:
        """The files whose time has come; they are the caller's to remove."""
        due = [path for pending in self._pending if pending.due_ms <= now_ms for path in pending.paths]
        self._pending = [pending for pending in self._pending if pending.due_ms > now_ms]
        return due
