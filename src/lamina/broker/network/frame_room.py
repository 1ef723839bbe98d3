"""The memory that the frames of one connection take while they arrive.

Owns the room that a large frame was given, and since when: one that takes too long keeps others waiting. Small frames
need none. Must not know sockets, nor what is in a frame.
"""

from collections.abc import Callable

from lamina.broker.network.admission import Admission
from lamina.wire.frames import KEPT_BUFFER_BYTES, FrameSplitter

_ARRIVAL_SECONDS = 10.0
_ARRIVAL_BYTES_PER_SECOND = 1024 * 1024


class FrameRoom:
    __slots__ = ("_admission", "_frames", "_held_at", "held_bytes")

    def __init__(self, admission: Admission, frames: FrameSplitter) -> None:
        self._admission = admission
        self._frames = frames
        self._held_at = 0.0
        self.held_bytes = 0

    @property
    def is_waited_for(self) -> bool:
        return self._admission.is_waiting(self)

    def take(self, frame_bytes: int, now: float, retry: Callable[[], None]) -> bool:
        """Whether the large frame that was announced may come in; when not, ``retry`` is called at its turn."""
        if self.held_bytes:
            return True
        if not self._admission.admit(self, frame_bytes, retry):
            return False
        self.held_bytes = frame_bytes
        self._held_at = now
        return True

    def is_overdue(self, now: float) -> bool:
        """Whether the frame has had more than enough time to arrive; its room is wanted by others."""
        enough = _ARRIVAL_SECONDS + self.held_bytes / _ARRIVAL_BYTES_PER_SECOND
        return bool(self.held_bytes) and now - self._held_at > enough

    def give_back(self, *, keeps_buffer: bool) -> None:
        """The frame was served. A buffer that did not grow too far may stay for the next one."""
        held_bytes, self.held_bytes = self.held_bytes, 0
        self._admission.give_back(held_bytes)
        if keeps_buffer and self._frames.buffer_bytes <= KEPT_BUFFER_BYTES:
            self._admission.keep(self, self._frames.buffer_bytes, self._frames.shrink)
        else:
            self._frames.shrink()

    def forget(self) -> None:
        """The connection ends: it keeps nothing and waits for nothing."""
        if self.held_bytes:
            self.give_back(keeps_buffer=False)
        self._admission.forget(self)
