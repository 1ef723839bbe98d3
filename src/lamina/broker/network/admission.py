"""How much memory requests may take while they arrive, in all and on one connection: ``queued.max.request.bytes``.

A frame that fits the connection's own small buffer need not ask. A larger one is admitted whole, so that
what has begun can end; one that finds none left waits without being read. Very large frames never take the last
eighth, so that ordinary producers go on beside them. Buffers that connections keep for their next large frame
take a sixteenth of the limit besides, and the one that was used longest ago goes first. So does the share of clients
that have not logged in: whatever they announce, they take nothing from others. Must not know sockets.
"""

from collections.abc import Callable

from lamina.wire.frames import KEPT_BUFFER_BYTES, FrameSplitter

SMALL_FRAME_BYTES = 2 * 1024 * 1024
_ARRIVAL_SECONDS = 10.0
_ARRIVAL_BYTES_PER_SECOND = 1024 * 1024


_STRANGERS_DIVISOR = 16


def strangers_share(admission: "Admission") -> "Admission":
    """For those that have not logged in."""
    return Admission(admission.limit_bytes // _STRANGERS_DIVISOR)


class Admission:
    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.kept_bytes = 0
        self._waiting: dict[object, tuple[int, Callable[[], None]]] = {}
        self._kept: dict[object, tuple[int, Callable[[], None]]] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def is_waiting(self, holder: object) -> bool:
        return holder in self._waiting

    def admit(self, holder: object, frame_bytes: int, retry: Callable[[], None]) -> bool:
        """Take room for a frame; if there is none, ``retry`` is called when some was given back."""
        if not self._fits(frame_bytes):
            self._waiting[holder] = (frame_bytes, retry)
            return False
        self._unkeep(holder)
        self.held_bytes += frame_bytes
        return True

    def _fits(self, frame_bytes: int) -> bool:
        if not self.held_bytes:
            return True
        limit_bytes = self.limit_bytes
        if frame_bytes > SMALL_FRAME_BYTES:
            limit_bytes -= limit_bytes // 8
        return self.held_bytes + frame_bytes <= limit_bytes

    def give_back(self, frame_bytes: int) -> None:
        self.held_bytes -= frame_bytes
        for holder, (waiting_bytes, retry) in list(self._waiting.items()):
            if self._fits(waiting_bytes):
                del self._waiting[holder]
                retry()

    def keep(self, holder: object, buffer_bytes: int, release: Callable[[], None]) -> None:
        """Remember that a connection keeps a grown buffer; ``release`` is called when it has kept it too long."""
        self._unkeep(holder)
        self._kept[holder] = (buffer_bytes, release)
        self.kept_bytes += buffer_bytes
        while self.kept_bytes > self.limit_bytes // 16:
            oldest = next(iter(self._kept))
            self._unkeep(oldest)()

    def _unkeep(self, holder: object) -> Callable[[], None]:
        buffer_bytes, release = self._kept.pop(holder, (0, _nothing))
        self.kept_bytes -= buffer_bytes
        return release

    def forget(self, holder: object) -> None:
        self._waiting.pop(holder, None)
        self._unkeep(holder)


class FrameAdmission:
    """What the frame that arrives on one connection holds, and since when: one that takes too long keeps others
    waiting. Small frames need nothing."""

    __slots__ = ("_admission", "_frames", "_held_at", "_held_of", "held_bytes")

    def __init__(self, admission: Admission, frames: FrameSplitter) -> None:
        self._admission = admission
        self._held_of = admission
        self._frames = frames
        self._held_at = 0.0
        self.held_bytes = 0

    @property
    def is_waiting(self) -> bool:
        return self._admission.is_waiting(self)

    def join(self, admission: Admission) -> None:
        """Take from another share from now on; what is held is given back to where it came from."""
        self._admission.forget(self)
        self._admission = admission

    def take(self, frame_bytes: int, now: float, retry: Callable[[], None]) -> bool:
        """Whether the large frame that was announced may come in; when not, ``retry`` is called at its turn."""
        if self.held_bytes:
            return True
        if not self._admission.admit(self, frame_bytes, retry):
            return False
        self.held_bytes = frame_bytes
        self._held_of = self._admission
        self._held_at = now
        return True

    def is_overdue(self, now: float) -> bool:
        """Whether the frame has had more than enough time to arrive: others wait for its memory."""
        enough = _ARRIVAL_SECONDS + self.held_bytes / _ARRIVAL_BYTES_PER_SECOND
        return bool(self.held_bytes) and now - self._held_at > enough

    def give_back(self, *, keeps_buffer: bool) -> None:
        """The frame was served. A buffer that did not grow too far may stay for the next one."""
        held_bytes, self.held_bytes = self.held_bytes, 0
        self._held_of.give_back(held_bytes)
        if keeps_buffer and self._frames.buffer_bytes <= KEPT_BUFFER_BYTES:
            self._admission.keep(self, self._frames.buffer_bytes, self._frames.shrink)
        else:
            self._frames.shrink()

    def forget(self) -> None:
        """The connection ends: it keeps nothing and waits for nothing."""
        if self.held_bytes:
            self.give_back(keeps_buffer=False)
        self._admission.forget(self)


def _nothing() -> None:
    """What a connection does that kept nothing."""
