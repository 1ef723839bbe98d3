import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import CorruptMessage
from lamina.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    add_to_sequence,
    check_crc,
    check_header,
    pack_header,
    read_header,
    stamp,
    stamp_log_append_time,
    stamp_max_timestamp,
    walk,
)
from lamina.records.record import build_batch, read_records
from tests.records.vectors import V1, V1_RECORDS, V2, V3, V3_HORIZON_MS, V3_WITH_HORIZON, V4, V5, V5_CLEANED

VECTORS = (V1, V2, V3, V3_WITH_HORIZON, V4, V5, V5_CLEANED)


@pytest.mark.parametrize("vector", VECTORS)
def test_a_header_reads_and_packs_to_the_same_bytes_and_its_crc_holds(vector: bytes) -> None:
    header = read_header(vector)
    check_header(header)
    check_crc(vector, 0, header)
    assert header.size_bytes == len(vector)
    assert pack_header(header) == vector[:HEADER_BYTES]


def test_the_crc_of_the_first_vector_is_the_one_in_kafkas_own_tests() -> None:
    assert read_header(V1).crc == 3851219455


def test_the_flags_of_a_marker_are_transactional_and_control() -> None:
    header = read_header(V2)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, True, False)
    assert (header.base_offset, header.last_offset, header.next_offset) == (5, 5, 6)
    assert header.last_sequence == -1


def test_a_delete_horizon_is_read_from_the_base_timestamp() -> None:
    assert read_header(V3_WITH_HORIZON).delete_horizon_ms == V3_HORIZON_MS
    assert read_header(V3).delete_horizon_ms is None


def test_the_last_sequence_follows_the_last_offset_and_wraps_to_zero() -> None:
    assert read_header(V4).last_sequence == 11
    assert add_to_sequence(2**31 - 1, 1) == 0
    assert add_to_sequence(2**31 - 2, 3) == 1


@given(st.lists(st.sampled_from(VECTORS), max_size=6), st.integers(0, 60))
def test_a_walk_finds_every_whole_batch_and_stops_before_one_that_is_cut(batches: list[bytes], cut: int) -> None:
    whole = b"".join(batches)
    buffer = memoryview(b"ahead" + whole + V1[:cut])
    found = [bytes(buffer[at : at + header.size_bytes]) for at, header in walk(buffer, 5)]
    assert found == batches


def test_a_walk_stops_before_a_batch_whose_last_byte_is_missing() -> None:
    assert [at for at, _ in walk(V1 + V3[:-1])] == [0]


@pytest.mark.parametrize(
    "change",
    [{"magic": 1}, {"length": 48}, {"base_offset": -1}, {"last_offset_delta": -1}, {"record_count": -1}],
)
def test_a_header_that_no_batch_can_have_is_corrupt(change: dict[str, int]) -> None:
    header: BatchHeader = read_header(V1)._replace(**change)
    with pytest.raises(CorruptMessage):
        check_header(header)
    with pytest.raises(CorruptMessage):
        list(walk(V3 + pack_header(header) + V1[HEADER_BYTES:]))


@given(st.integers(21, len(V1) - 1), st.integers(1, 255))
def test_any_change_in_the_covered_bytes_breaks_the_crc(at: int, mask: int) -> None:
    batch = bytearray(V1)
    batch[at] ^= mask
    with pytest.raises(CorruptMessage, match="CRC"):
        check_crc(batch, 0, read_header(batch))


def test_a_stamp_gives_offset_and_leader_epoch_and_leaves_the_rest_and_the_crc_alone() -> None:
    buffer = bytearray(V3 + V1)
    stamp(buffer, len(V3), 2**40, 7)
    header = read_header(buffer, len(V3))
    assert (header.base_offset, header.leader_epoch) == (2**40, 7)
    check_crc(buffer, len(V3), header)
    assert buffer[: len(V3)] == V3
    assert [record.offset for record in read_records(buffer, len(V3), header, 1024)] == [2**40, 2**40 + 1]
    stamp(buffer, len(V3), 0, -1)
    assert buffer == V3 + V1


def test_log_append_time_is_what_every_record_then_says_and_the_crc_holds() -> None:
    buffer = bytearray(V3 + V1)
    stamp_log_append_time(memoryview(buffer), len(V3), 999)
    header = read_header(buffer, len(V3))
    check_crc(buffer, len(V3), header)
    assert header.is_log_append_time
    assert [record.timestamp for record in read_records(buffer, len(V3), header, 1024)] == [999, 999]
    assert buffer[len(V3) :] == build_batch(V1_RECORDS, log_append_time_ms=999)


def test_a_wrong_max_timestamp_is_corrected_with_the_crc() -> None:
    buffer = bytearray(V1)
    stamp_max_timestamp(buffer, 0, 1)
    check_crc(buffer, 0, read_header(buffer))
    stamp_max_timestamp(buffer, 0, 283843)
    assert buffer == V1
