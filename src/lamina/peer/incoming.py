"""Received bytes → frames that outlive the next receive. Sans-io: the connection receives into what it is lent.

Owns the receive side of one connection to a broker. A frame has memory of its own, because the caller may keep a
view into it (the records of a Fetch response). The bytes that arrive together with the size are copied once; the rest
of a large frame is received where it stays. New memory costs more than to receive into it: a large frame that nobody
looks at any more is overwritten by the next one, as long as large ones keep coming. Must not know what is in a frame.

`wire.frames.FrameSplitter` is the broker's side of this: there frames are short-lived, and one buffer serves them all.
"""

from mmap import mmap
from struct import Struct
from sys import getrefcount
from typing import Final

from lamina.errors import MalformedResponse
from lamina.wire.frames import MAPPED_BYTES, allocate, map_memory

STAGING_BYTES: Final = 16 * 1024
KEPT_FOR_FRAMES: Final = 16
"""So many smaller frames in a row, and the memory of the last large one goes back to the system."""

_SIZE = Struct(">i")
_TLS_ALERTS: Final = frozenset({0x15030100, 0x15030200, 0x15030300})
"""What the first four bytes of a TLS alert say as a size: it is how a TLS listener refuses a plain request (S24)."""
_CORRELATION_ID_BYTES: Final = 4
_OURS: Final = 2
"""References to memory of which there is no view: from here, and for the time of the question."""


class IncomingFrames:
    """The frames of one connection, as their bytes come in."""

    __slots__ = ("_filled", "_frame", "_held", "_large", "_max_frame_bytes", "_smaller_frames", "_staging")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._staging = memoryview(bytearray(STAGING_BYTES))
        self._held = 0
        """Bytes at the start of the staging buffer: an incomplete size, so fewer than four."""
        self._frame: memoryview | None = None
        """A frame of which a part is there, and how much: it is received into directly."""
        self._filled = 0
        self._large: mmap | None = None
        """The memory of the last large frame."""
        self._smaller_frames = 0
        """That came since."""

    def buffer_for_recv(self) -> memoryview:
        """Where to receive into; never empty."""
        return self._staging[self._held :] if self._frame is None else self._frame[self._filled :]

    def received(self, count: int) -> list[memoryview]:
        """The frames that `count` bytes more have completed, without their sizes.

        Raises `MalformedResponse` at the first size that cannot be, before anything is allocated for it.
        """
        if self._frame is None:
            return self._split(self._held + count)
        self._filled += count
        if self._filled < len(self._frame):
            return []
        frame, self._frame = self._frame, None
        return [frame]

    def _split(self, end: int) -> list[memoryview]:
        staging = self._staging
        frames = []
        at = 0
        while self._frame is None and end - at >= _SIZE.size:
            frame = self._allocate(self._checked(_SIZE.unpack_from(staging, at)[0]))
            at += _SIZE.size
            filled = min(len(frame), end - at)
            frame[:filled] = staging[at : at + filled]
            at += filled
            if filled == len(frame):
                frames.append(frame)
            else:
                self._frame, self._filled = frame, filled
        self._held = end - at
        staging[: self._held] = bytes(staging[at:end])
        return frames

    def _allocate(self, size: int) -> memoryview:
        if size < MAPPED_BYTES:
            self._smaller_frames += 1
            if self._smaller_frames >= KEPT_FOR_FRAMES:
                self._large = None
            return allocate(size)
        self._smaller_frames = 0
        if self._large is None or len(self._large) < size or getrefcount(self._large) > _OURS:
            # Of what is mapped beyond the frame nothing is used before a larger one comes.
            self._large = map_memory(min(1 << (size - 1).bit_length(), self._max_frame_bytes))
        return memoryview(self._large)[:size]

    def _checked(self, size: int) -> int:
        if size in _TLS_ALERTS:
            raise MalformedResponse("it speaks TLS, and this client does not; set security.protocol to SSL or SASL_SSL")
        if not _CORRELATION_ID_BYTES <= size <= self._max_frame_bytes:
            raise MalformedResponse("it does not speak Kafka's protocol")
        return size
