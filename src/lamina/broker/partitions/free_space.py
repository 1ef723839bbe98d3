"""Whether the disk of one log directory has enough free space to write: ``lamina.disk.free.min.bytes``.

Owns the last measurement and what was appended since, so that a burst between two measurements cannot run past the
limit. What is low stays low until a tenth more than the limit is free: writes should not come and go at the edge.
A log line at each change. Producers are told POLICY_VIOLATION, which every client hands to its application at once,
with the sentence; KAFKA_STORAGE_ERROR would be tried again in silence for minutes. Must not know the disk: it is told.
"""

import logging

from lamina.errors import PolicyViolation

logger = logging.getLogger(__name__)

_MARGIN = 10
"""The part of the limit that has to be free above it before writes go on: one tenth."""


class FreeSpace:
    __slots__ = ("_measured_bytes", "_taken_bytes", "is_low", "min_bytes", "path", "refused")

    def __init__(self, path: str) -> None:
        self.path = path
        self.min_bytes = 0
        self.is_low = False
        self.refused = 0
        """Batches that were not taken."""
        self._measured_bytes: int | None = None
        self._taken_bytes = 0

    @property
    def free_bytes(self) -> int | None:
        """What should be left by now; ``None`` before the first measurement."""
        return None if self._measured_bytes is None else self._measured_bytes - self._taken_bytes

    @property
    def taken_bytes(self) -> int:
        """What was appended since the last measurement; told to ``measured`` if it was so when the next began."""
        return self._taken_bytes

    def take(self, size_bytes: int) -> None:
        """Something was appended."""
        self._taken_bytes += size_bytes

    def check(self, size_bytes: int) -> None:
        """Raise for batches of this size, a client's or a leader's, if they are not to be written."""
        if not self.is_low:
            measured = self._measured_bytes
            if measured is None or measured - self._taken_bytes - size_bytes >= self.min_bytes or not self.min_bytes:
                return
            self._become_low()
        self.refused += 1
        raise PolicyViolation(self.sentence)

    def measured(self, free_bytes: int, taken_before_bytes: int, min_bytes: int) -> None:
        """The disk says so, having seen everything that was taken before the measurement began, if no more."""
        self._measured_bytes = free_bytes
        self._taken_bytes -= taken_before_bytes
        self.min_bytes = min_bytes
        left_bytes = free_bytes - self._taken_bytes
        if self.is_low:
            if not min_bytes or left_bytes >= min_bytes + min_bytes // _MARGIN:
                self.is_low = False
                logger.warning("%s has space again, %d bytes: writes go on", self.path, left_bytes)
        elif min_bytes and left_bytes < min_bytes:
            self._become_low()

    def _become_low(self) -> None:
        self.is_low = True
        logger.error("%s; reading, deleting and retention go on, writes resume when there is space", self.sentence)

    @property
    def sentence(self) -> str:
        return (
            f"the disk of {self.path} is nearly full: {self.free_bytes} bytes are free, and below "
            f"lamina.disk.free.min.bytes = {self.min_bytes} nothing is written"
        )
