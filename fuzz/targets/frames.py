"""Frames, received in pieces of any size: what comes out is what was put in, and memory follows what really came."""

from fuzz.choices import Choices
from lamina.wire.frames import KEPT_BUFFER_BYTES, FrameError, FrameSplitter, SharedBuffers

_MAX_FRAME_BYTES = 100_000
_BASE_BUFFER_BYTES = 64


def one(data: bytes) -> None:
    choices = Choices(data)
    piece_sizes = choices.take(8) or b"\0"
    stream = choices.rest()
    splitter = FrameSplitter(_MAX_FRAME_BYTES, SharedBuffers(_BASE_BUFFER_BYTES))
    found: list[bytes] = []
    failed = False
    at = turn = 0
    while at < len(stream) and not failed:
        buffer = splitter.buffer_for_recv()
        piece = stream[at : at + min(len(buffer), 1 + piece_sizes[turn % len(piece_sizes)] * (1 + turn % 7))]
        buffer[: len(piece)] = piece
        splitter.received(len(piece))
        at += len(piece)
        turn += 1
        try:
            for frame in splitter.frames():
                found.append(bytes(frame))  # noqa: PERF401 - those before a bad one count
            pending_bytes = splitter.pending_frame_bytes
        except FrameError:
            failed = True
            break
        assert pending_bytes <= _MAX_FRAME_BYTES
        # Eight times what came, or what is kept because large frames keep coming.
        assert splitter.buffer_bytes <= max(_BASE_BUFFER_BYTES, 8 * at, min(KEPT_BUFFER_BYTES, _MAX_FRAME_BYTES + 4))
        if turn % 5 == 0:
            splitter.shrink()
    expected, refused = _frames_of(stream[:at])
    assert found == expected
    assert failed == refused


def _frames_of(stream: bytes) -> tuple[list[bytes], bool]:
    """The frames at the start of all these bytes, and whether something that is no frame follows them."""
    frames: list[bytes] = []
    at = 0
    while at + 4 <= len(stream):
        size = int.from_bytes(stream[at : at + 4], "big", signed=True)
        if not 0 <= size <= _MAX_FRAME_BYTES or (at == 0 and stream[:2] == b"\x16\x03"):
            return frames, True
        if at + 4 + size > len(stream):
            break
        frames.append(stream[at + 4 : at + 4 + size])
        at += 4 + size
    return frames, False
