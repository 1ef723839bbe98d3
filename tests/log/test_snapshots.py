"""Producer snapshots: vector V6, round trips and damage; formats.md §2.4."""

from collections import deque
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.files import Disk
from lamina.log.producer import BatchPlace, Producer
from lamina.log.snapshots import pack_snapshot, read_snapshot, snapshot_offsets, unpack_snapshot, write_snapshot

V6 = bytes.fromhex(
    "00017fcced9000000001000000000000000100000000000200000000000000020000000200000000000003e8ffffffffffffffffffffffff"
)
V6_PRODUCER = Producer(1, 0, -1, 1000, None, deque([BatchPlace(2, 2, 2, 1000)]))

int16, int32, int64 = st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)


@st.composite
def producers(draw: st.DrawFn) -> Producer:
    timestamp = draw(int64)
    batches = deque([BatchPlace(draw(int32), draw(int64), draw(int32), timestamp)] if draw(st.booleans()) else [])
    return Producer(draw(int64), draw(int16), draw(int32), timestamp, draw(st.none() | int64), batches)


def test_vector_v6_both_ways() -> None:
    assert pack_snapshot([V6_PRODUCER]) == V6
    assert unpack_snapshot(V6) == [V6_PRODUCER]


def test_a_producer_without_a_data_batch_has_no_sequence_no_offset_and_delta_zero() -> None:
    packed = pack_snapshot([Producer(1, 0, 3, 1000)])
    assert packed[20:36] == b"\xff" * 12 + b"\0" * 4
    assert unpack_snapshot(packed) == [Producer(1, 0, 3, 1000)]


@given(st.lists(producers(), max_size=20))
def test_what_is_packed_is_unpacked(expected: list[Producer]) -> None:
    assert unpack_snapshot(pack_snapshot(expected)) == expected


@given(st.lists(producers(), max_size=3), st.data())
def test_only_the_last_batch_is_stored(expected: list[Producer], data: st.DataObject) -> None:
    for producer in expected:
        if producer.batches:
            producer.batches.appendleft(BatchPlace(data.draw(int32), 0, 0, 0))
    assert all(len(producer.batches) <= 1 for producer in unpack_snapshot(pack_snapshot(expected)))


@given(st.lists(producers(), max_size=3), st.data())
def test_any_flipped_byte_is_found(some: list[Producer], data: st.DataObject) -> None:
    packed = bytearray(pack_snapshot(some))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="a producer snapshot"):
        unpack_snapshot(bytes(packed))


@given(st.binary(max_size=200), st.booleans())
def test_malformed_input_is_a_value_error(body: bytes, with_right_head: bool) -> None:
    data = b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body if with_right_head else body
    try:
        unpack_snapshot(data)
    except ValueError as error:
        assert str(error).startswith("a producer snapshot")


def test_snapshots_are_named_by_their_offset_and_listed_in_order(tmp_path: Path) -> None:
    disk = Disk()
    for offset in (100, 5):
        write_snapshot(disk, str(tmp_path), offset, [V6_PRODUCER], sync=False)
    (tmp_path / "00000000000000000007.snapshot.deleted").touch()
    assert snapshot_offsets(disk, str(tmp_path)) == [5, 100]
    assert (tmp_path / "00000000000000000100.snapshot").read_bytes() == V6
    assert read_snapshot(disk, str(tmp_path), 5) == [V6_PRODUCER]
