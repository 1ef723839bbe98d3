from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.wire.frames import KEPT_BUFFER_BYTES, FrameError, FrameSplitter, SharedBuffers

MAX_BYTES = 100 * 1024 * 1024
BASE_BYTES = 64


def _framed(*bodies: bytes) -> bytes:
    return b"".join(pack(">i", len(body)) + body for body in bodies)


def _feed(splitter: FrameSplitter, data: bytes) -> list[bytes]:
    """Receives all of it, as often as the buffer has to be asked for, and copies the frames that come out."""
    frames = []
    while data:
        buffer = splitter.buffer_for_recv()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        splitter.received(count)
        data = data[count:]
        frames += [bytes(frame) for frame in splitter.frames()]
    return frames


@given(st.lists(st.binary(max_size=300)), st.lists(st.integers(1, 90), min_size=1))
def test_frames_come_out_whole_however_they_come_in(bodies: list[bytes], cuts: list[int]) -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    stream = _framed(*bodies)
    frames = []
    turn = 0
    while stream:
        size = cuts[turn % len(cuts)]
        frames += _feed(splitter, stream[:size])
        stream = stream[size:]
        turn += 1
    assert frames == bodies
    assert splitter.pending_frame_bytes == 0


@given(st.binary(max_size=200))
def test_garbage_is_frames_or_an_error(data: bytes) -> None:
    splitter = FrameSplitter(1000, SharedBuffers(BASE_BYTES))
    try:
        _feed(splitter, data)
    except FrameError:
        return
    assert splitter.buffer_bytes <= 8 * max(BASE_BYTES, len(data))


def test_a_frame_is_a_writable_view_into_the_buffer() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    buffer = splitter.buffer_for_recv()
    buffer[:5] = _framed(b"x")
    splitter.received(5)
    (frame,) = splitter.frames()
    frame[0] = ord("y")
    assert buffer[4] == ord("y")


def test_frames_can_be_taken_one_at_a_time() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    stream = _framed(b"one", b"two")
    splitter.buffer_for_recv()[: len(stream)] = stream
    splitter.received(len(stream))
    assert bytes(next(splitter.frames())) == b"one"
    with pytest.raises(ValueError, match="has not been taken"):
        splitter.buffer_for_recv()
    assert bytes(next(splitter.frames())) == b"two"


def test_an_announced_frame_can_be_held_back_before_anything_is_allocated() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    assert _feed(splitter, pack(">i", MAX_BYTES)) == []
    assert splitter.pending_frame_bytes == MAX_BYTES
    assert splitter.buffer_bytes == BASE_BYTES


def test_the_buffer_grows_by_steps_as_a_large_frame_really_comes() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    _feed(splitter, pack(">i", MAX_BYTES))
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == BASE_BYTES
    _feed(splitter, bytes(BASE_BYTES - 4))
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == 8 * BASE_BYTES
    _feed(splitter, bytes(7 * BASE_BYTES))
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == 64 * BASE_BYTES


def test_a_grown_buffer_stays_while_large_frames_come_and_shrinks_after_a_small_one() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    large = bytes(1000)
    assert _feed(splitter, _framed(large)) == [large]
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == 1004
    assert _feed(splitter, _framed(large)) == [large]
    assert splitter.buffer_bytes == 1004
    assert _feed(splitter, _framed(b"small")) == [b"small"]
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == BASE_BYTES


def test_a_very_large_buffer_is_given_back_at_once() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    huge = bytes(KEPT_BUFFER_BYTES)
    assert _feed(splitter, _framed(huge)) == [huge]
    splitter.buffer_for_recv()
    assert splitter.buffer_bytes == BASE_BYTES


def test_frames_behind_a_large_one_survive_the_shrinking() -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    bodies = [bytes(500), b"a" * 40, b"b" * 400, b"c", b"d" * 63, b"e" * 60]
    assert _feed(splitter, _framed(*bodies)) == bodies


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (pack(">i", -1), "negative size, -1"),
        (pack(">i", 1001), "announced 1001 bytes, more than the 1000"),
        (b"GET / HTTP/1.1\r\n", "speaks HTTP"),
        (b"POST /topics", "speaks HTTP"),
        (b"HEAD /", "speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "speaks TLS"),
    ],
)
def test_bytes_that_are_not_kafka_are_refused_with_a_sentence(first: bytes, sentence: str) -> None:
    splitter = FrameSplitter(1000, SharedBuffers(BASE_BYTES))
    with pytest.raises(FrameError, match=sentence):
        _feed(splitter, first)
    assert splitter.buffer_bytes == BASE_BYTES


def test_a_grown_buffer_can_be_given_back_without_losing_what_came_next() -> None:
    splitter = FrameSplitter(100_000, SharedBuffers(BASE_BYTES))
    large, next_one = bytes(20 * BASE_BYTES), b"next"
    sent = _framed(large) + _framed(next_one)[:-1]
    assert _feed(splitter, sent) == [large]
    assert splitter.buffer_bytes > BASE_BYTES
    splitter.shrink()
    assert splitter.buffer_bytes == len(_framed(next_one)) - 1
    assert _feed(splitter, _framed(next_one)[-1:]) == [next_one]


@pytest.mark.parametrize("held_bytes", [0, 3, 20, BASE_BYTES, BASE_BYTES + 1, 5 * BASE_BYTES])
def test_a_grown_buffer_that_is_taken_away_leaves_just_the_bytes_of_the_next_frame(held_bytes: int) -> None:
    splitter = FrameSplitter(MAX_BYTES, SharedBuffers(BASE_BYTES))
    large, next_one = b"l" * 100 * BASE_BYTES, _framed(b"n" * 10 * BASE_BYTES)
    assert _feed(splitter, _framed(large)) == [large]
    buffer = splitter.buffer_for_recv()
    buffer[: 4 + BASE_BYTES + held_bytes] = _framed(b"f" * BASE_BYTES) + next_one[:held_bytes]
    splitter.received(4 + BASE_BYTES + held_bytes)
    (frame,) = splitter.frames()
    splitter.shrink()
    assert splitter.buffer_bytes == held_bytes
    splitter.rest()
    assert frame == b"f" * BASE_BYTES, "it may still be read"
    assert _feed(splitter, next_one[held_bytes:]) == [next_one[4:]]


def test_tls_is_recognised_even_where_its_first_bytes_are_an_allowed_size() -> None:
    with pytest.raises(FrameError, match="speaks TLS"):
        _feed(FrameSplitter(2**31 - 1, SharedBuffers(BASE_BYTES)), b"\x16\x03\x01\x02")


def test_more_than_the_buffer_holds_cannot_have_been_received() -> None:
    splitter = FrameSplitter(1000, SharedBuffers(BASE_BYTES))
    with pytest.raises(ValueError, match="cannot have been received"):
        splitter.received(BASE_BYTES + 1)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=30), st.data())
def test_a_connection_that_rests_between_any_two_reads_loses_nothing(
    messages: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(len(message).to_bytes(4, "big") + message for message in messages)
    shared = SharedBuffers(BASE_BYTES)
    splitter = FrameSplitter(MAX_BYTES, shared)
    found: list[bytes] = []
    at = 0
    while at < len(stream):
        buffer = splitter.buffer_for_recv()
        count = min(data.draw(st.integers(1, 64)), len(buffer), len(stream) - at)
        buffer[:count] = stream[at : at + count]
        at += count
        splitter.received(count)
        found += [bytes(frame) for frame in splitter.frames()]
        if data.draw(st.booleans()):
            splitter.rest()
            other = shared.take()
            other[:] = bytes(len(other))
            shared.give_back(other)
    assert found == messages
