"""Frames from any chunking of the bytes; nothing larger than announced, nothing announced that may not be."""

from struct import pack
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import MalformedResponse
from lamina.peer.incoming import KEPT_FOR_FRAMES, STAGING_BYTES, IncomingFrames
from lamina.wire.frames import MAPPED_BYTES

MAX_FRAME_BYTES = 3 * MAPPED_BYTES
FRAMES = st.lists(st.binary(min_size=4, max_size=200) | st.integers(4, 40_000).map(bytes), max_size=5)


@given(contents=FRAMES, data=st.data())
def test_any_chunking_gives_the_same_frames(contents: list[bytes], data: st.DataObject) -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    stream = b"".join(pack(">i", len(content)) + content for content in contents)
    found: list[memoryview] = []
    at = 0
    while at < len(stream):
        chunk = data.draw(st.integers(1, 50_000) | st.integers(1, 500))
        at += receive(frames, stream[at : at + chunk], found)
    # All at the end: a frame must not change when later ones come in.
    assert [bytes(frame) for frame in found] == contents


def test_the_rest_of_a_large_frame_is_received_where_it_stays() -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    found: list[memoryview] = []
    receive(frames, pack(">i", 100_000) + b"start", found)
    buffer = frames.buffer_for_recv()
    assert len(buffer) == 100_000 - 5
    buffer[:] = b"x" * len(buffer)
    (frame,) = frames.received(len(buffer))
    assert frame.obj is buffer.obj


def frame_of(frames: IncomingFrames, content: bytes) -> memoryview:
    found: list[memoryview] = []
    stream, at = pack(">i", len(content)) + content, 0
    while at < len(stream):
        at += receive(frames, stream[at:], found)
    (frame,) = found
    return frame


def test_memory_of_a_large_frame_is_used_again_when_nobody_looks_at_it() -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    memory = ref(frame_of(frames, b"a" * 2 * MAPPED_BYTES).obj)
    again = frame_of(frames, b"b" * MAPPED_BYTES)
    assert again.obj is memory()
    assert bytes(again) == b"b" * MAPPED_BYTES


def test_who_keeps_a_part_of_a_large_frame_keeps_what_is_in_it() -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    records = frame_of(frames, b"a" * MAPPED_BYTES)[100:200]
    other = frame_of(frames, b"b" * MAPPED_BYTES)
    assert bytes(records) == b"a" * 100
    assert other.obj is not records.obj


def test_memory_of_a_large_frame_goes_back_when_only_small_ones_come() -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    memory = ref(frame_of(frames, bytes(MAPPED_BYTES)).obj)
    for _ in range(KEPT_FOR_FRAMES - 1):
        frame_of(frames, b"small")
    assert memory() is not None
    frame_of(frames, b"small")
    assert memory() is None


def test_small_frames_between_large_ones_do_not_cost_their_memory() -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    memory = ref(frame_of(frames, bytes(MAPPED_BYTES)).obj)
    for _ in range(3 * KEPT_FOR_FRAMES):
        frame_of(frames, b"small")
        frame_of(frames, bytes(MAPPED_BYTES))
    assert memory() is not None


@pytest.mark.parametrize("size", [-1, 0, 3, MAX_FRAME_BYTES + 1, 2**31 - 1, int.from_bytes(b"HTTP", "big")])
def test_a_size_that_cannot_be_is_refused(size: int) -> None:
    with pytest.raises(MalformedResponse, match="does not speak Kafka's protocol"):
        receive(IncomingFrames(MAX_FRAME_BYTES), pack(">i", size), [])


@given(garbage=st.binary(max_size=5000))
def test_garbage_never_makes_a_buffer_larger_than_a_frame_may_be(garbage: bytes) -> None:
    frames = IncomingFrames(MAX_FRAME_BYTES)
    at = 0
    try:
        while at < len(garbage):
            at += receive(frames, garbage[at:], [])
            assert 0 < len(frames.buffer_for_recv()) <= max(MAX_FRAME_BYTES, STAGING_BYTES)
    except MalformedResponse:
        pass


def receive(frames: IncomingFrames, chunk: bytes, found: list[memoryview]) -> int:
    """As a socket does it: no more than the buffer holds. Returns how much was taken."""
    buffer = frames.buffer_for_recv()
    count = min(len(buffer), len(chunk))
    buffer[:count] = chunk[:count]
    found += frames.received(count)
    return count
