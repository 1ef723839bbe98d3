"""Received bytes → frames. Sans-io: the connection receives into the buffer that it is lent.

Owns the receive buffer of one connection and the four-byte size in front of every message. The loop is

    n = sock.recv_into(splitter.buffer_for_recv())
    splitter.received(n)
    for frame in splitter.frames(): ...

A connection that has served all that came rests: it gives its base buffer back to those that all connections share, and
keeps a few bytes of the next frame at most.

Invariants: a size is checked before anything is allocated for it; the buffer outgrows its base only for a
frame that has been announced, and then by steps, so that it never holds more than eight times what really
came; a frame is a view into the buffer and valid until `buffer_for_recv` or `rest` is called. Frames are
writable, so that batches can be stamped in place. Must not know what is in a frame.
"""

from collections.abc import Iterator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct
from typing import Final

_SIZE = Struct(">i")
_SIZE_BYTES: Final = _SIZE.size
_unpack_size = _SIZE.unpack_from

BASE_BUFFER_BYTES: Final = 64 * 1024
KEPT_BUFFER_BYTES: Final = 2 * 1024 * 1024
"""A grown buffer up to this size stays while large frames keep coming; a larger one is given back at once."""

RESTING_BYTES: Final = 4 * 1024
"""How much of the next frames a connection may hold while it rests."""
_FREE_BUFFERS: Final = 16

_GROWTH: Final = 8
MAPPED_BYTES: Final = 256 * 1024
"""A buffer of this size comes straight from the system, and goes back to it."""

_HTTP_STARTS: Final = frozenset({b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"CONN"})
_TLS_HANDSHAKE: Final = b"\x16\x03"


class FrameError(Exception):
    """The bytes are not frames. The connection cannot go on."""


class SharedBuffers:
    """Base buffers that are free. One is enough as long as requests are served at once."""

    __slots__ = ("_free", "size_bytes")

    def __init__(self, size_bytes: int = BASE_BUFFER_BYTES) -> None:
        self.size_bytes = size_bytes
        self._free: list[memoryview] = []

    def take(self) -> memoryview:
        return self._free.pop() if self._free else allocate(self.size_bytes)

    def give_back(self, buffer: memoryview) -> None:
        if len(self._free) < _FREE_BUFFERS:
            self._free.append(buffer)


class FrameSplitter:
    """The receive buffer of one connection."""

    __slots__ = (
        "_base_bytes",
        "_buffer",
        "_end",
        "_is_first",
        "_last_frame_bytes",
        "_limit_name",
        "_max_frame_bytes",
        "_shared",
        "_start",
    )

    def __init__(self, max_frame_bytes: int, shared: SharedBuffers | None = None) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._limit_name = "socket.request.max.bytes"
        self._shared = shared or SharedBuffers()
        self._base_bytes = self._shared.size_bytes
        self._buffer = _NOTHING
        """The base buffer or a larger one; just the held bytes while the connection rests or once it shrank."""
        self._start = 0
        self._end = 0
        self._last_frame_bytes = 0
        self._is_first = True

    def limit(self, max_frame_bytes: int, setting: str) -> None:
        """Take no larger frames from now on, by the setting of that name."""
        self._max_frame_bytes = max_frame_bytes
        self._limit_name = setting

    @property
    def buffer_bytes(self) -> int:
        """The memory that this connection's receive buffer takes now."""
        return len(self._buffer)

    @property
    def is_empty(self) -> bool:
        """Whether all that was received was given out."""
        return self._start == self._end

    @property
    def pending_frame_bytes(self) -> int:
        """The size of the frame that has been announced and is not complete; 0 when there is none.

        Nothing is allocated for it until `buffer_for_recv` is called, so a broker that must hold back
        (`queued.max.request.bytes`) looks here first and leaves the socket alone until it can admit the
        frame. Raises `FrameError`, as `frames` does.
        """
        if self._end - self._start < _SIZE_BYTES:
            return 0
        return self._announced_bytes()

    def buffer_for_recv(self) -> memoryview:
        """Where to receive into; never empty. Frames given out before are overwritten.

        To be called when `frames` has nothing more to give.
        """
        held_bytes = self._end - self._start
        if self._buffer is _NOTHING:
            self._buffer = self._shared.take()
            return self._buffer
        if len(self._buffer) < self._base_bytes:
            self._move_to(self._shared.take())
        if held_bytes == 0 and len(self._buffer) == self._base_bytes:
            self._start = self._end = 0
            return self._buffer
        needed_bytes = _SIZE_BYTES + self.pending_frame_bytes
        if held_bytes >= needed_bytes:
            raise ValueError("A complete frame has not been taken yet.")
        capacity = self._capacity_for(needed_bytes, held_bytes)
        if capacity != len(self._buffer):
            outgrown = self._buffer
            self._move_to(allocate(capacity) if capacity != self._base_bytes else self._shared.take())
            if len(outgrown) == self._base_bytes:
                self._shared.give_back(outgrown)
        elif self._start + needed_bytes > capacity or held_bytes == 0:
            self._move_to(self._buffer)
        return self._buffer[self._end :]

    def rest(self) -> None:
        """Give the base buffer back until more bytes come. Frames given out before are no longer valid."""
        held_bytes = self._end - self._start
        if len(self._buffer) != self._base_bytes or held_bytes > RESTING_BYTES:
            return
        buffer = self._buffer
        self._buffer = memoryview(bytearray(buffer[self._start : self._end])) if held_bytes else _NOTHING
        self._start, self._end = 0, held_bytes
        self._shared.give_back(buffer)

    def shrink(self) -> None:
        """Give a grown buffer up, and hold just the bytes of the next frames. Frames given out before stay valid."""
        held_bytes = self._end - self._start
        if len(self._buffer) > max(self._base_bytes, held_bytes):
            self._move_to(allocate(held_bytes) if held_bytes else _NOTHING)

    def received(self, count: int) -> None:
        """`count` bytes were put at the start of what `buffer_for_recv` returned."""
        if not 0 <= count <= len(self._buffer) - self._end:
            raise ValueError(f"{count} bytes cannot have been received into {len(self._buffer) - self._end}.")
        self._end += count

    def frames(self) -> Iterator[memoryview]:
        """The complete frames, without their sizes. Raises `FrameError` at the first size that cannot be."""
        while self._end - self._start >= _SIZE_BYTES:
            size = self._announced_bytes()
            frame_at = self._start + _SIZE_BYTES
            frame_end = frame_at + size
            if frame_end > self._end:
                return
            self._start = frame_end
            self._last_frame_bytes = size
            yield self._buffer[frame_at:frame_end]

    def _announced_bytes(self) -> int:
        """The size at the start of what is held, checked."""
        if self._is_first:
            self._check_protocol(bytes(self._buffer[self._start : self._start + _SIZE_BYTES]))
            self._is_first = False
        size: int = _unpack_size(self._buffer, self._start)[0]
        if size < 0:
            raise FrameError(f"A message announced a negative size, {size}.")
        if size > self._max_frame_bytes:
            raise FrameError(
                f"A message announced {size} bytes, more than the {self._max_frame_bytes} that are taken "
                f"({self._limit_name})."
            )
        return size

    def _check_protocol(self, first: bytes) -> None:
        if first in _HTTP_STARTS:
            raise FrameError("The client speaks HTTP; this port speaks the Kafka protocol.")
        if first.startswith(_TLS_HANDSHAKE):
            raise FrameError(
                "The client speaks TLS; this port is plaintext (security.protocol of the client: PLAINTEXT)."
            )

    def _capacity_for(self, needed_bytes: int, held_bytes: int) -> int:
        """Enough for the next step of the announced frame; more if what is there is worth keeping."""
        step_bytes = self._base_bytes
        while step_bytes <= held_bytes:
            step_bytes *= _GROWTH
        target = max(self._base_bytes, min(needed_bytes, step_bytes))
        capacity = len(self._buffer)
        large_ones_come = max(needed_bytes, self._last_frame_bytes) > self._base_bytes
        if large_ones_come and target <= capacity <= max(KEPT_BUFFER_BYTES, needed_bytes):
            return capacity
        return target

    def _move_to(self, buffer: memoryview) -> None:
        held_bytes = self._end - self._start
        buffer[:held_bytes] = self._buffer[self._start : self._end]
        self._buffer = buffer
        self._start = 0
        self._end = held_bytes


def allocate(size_bytes: int) -> memoryview:
    """A large buffer is mapped: of what the allocator gets back it would keep some for other uses."""
    return memoryview(map_memory(size_bytes) if size_bytes >= MAPPED_BYTES else bytearray(size_bytes))


def map_memory(size_bytes: int) -> mmap:
    """Private, which costs half as much as memory that could be shared: a page is had at its first use."""
    return mmap(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS)


_NOTHING: Final = memoryview(bytearray())
