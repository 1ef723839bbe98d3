import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import HEADER_BYTES, BatchHeader, Codec, check_crc, check_header, read_header
from lamina.records.record import Record, build_batch, build_empty_batch, read_records
from tests.records.strategies import records
from tests.records.vectors import (
    V1,
    V1_RECORDS,
    V3,
    V3_HORIZON_MS,
    V3_RECORDS,
    V3_WITH_HORIZON,
    V4,
    V5,
    V5_CLEANED,
    V5_RECORDS,
)

LIMIT_BYTES = 1024 * 1024


def read_all(batch: bytes | bytearray) -> list[Record]:
    return read_records(batch, 0, read_header(batch), LIMIT_BYTES)


def test_the_vectors_are_built_bit_for_bit() -> None:
    assert build_batch(V1_RECORDS) == V1
    assert build_batch(V3_RECORDS, leader_epoch=998) == V3
    assert build_batch(V3_RECORDS, leader_epoch=998, delete_horizon_ms=V3_HORIZON_MS) == V3_WITH_HORIZON
    assert build_batch(V5_RECORDS, leader_epoch=0) == V5
    assert build_batch(V5_RECORDS[2:], base_offset=0, leader_epoch=0) == V5_CLEANED


def test_the_vectors_are_read() -> None:
    assert read_all(V1) == list(V1_RECORDS)
    assert read_all(V3) == list(V3_RECORDS)
    assert read_all(V5) == list(V5_RECORDS)
    assert read_all(V5_CLEANED) == list(V5_RECORDS[2:])


def test_a_delete_horizon_leaves_the_timestamps_as_they_were() -> None:
    """Fact 67."""
    assert read_all(V3_WITH_HORIZON) == list(V3_RECORDS)


def test_a_header_only_batch_is_built_from_the_header_of_the_one_it_stands_for() -> None:
    """Fact 73: codec and horizon go, the range, the producer and the max timestamp stay."""
    full = build_batch(
        [Record(3, 11, b"k", None), Record(4, 12, b"k", None)],
        codec=Codec.ZSTD,
        leader_epoch=293,
        producer_id=23,
        producer_epoch=5,
        base_sequence=10,
        delete_horizon_ms=77,
    )
    assert build_empty_batch(read_header(full)) == V4
    assert read_all(V4) == []


@given(
    found=records(gaps=True),
    codec=st.sampled_from(Codec),
    before=st.integers(0, 50),
    after=st.integers(0, 50),
    producer=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
    leader_epoch=st.integers(-1, 2**31 - 1),
    is_transactional=st.booleans(),
    is_control=st.booleans(),
    horizon=st.none() | st.integers(0, 2**62),
    ahead=st.binary(max_size=9),
)
def test_whatever_is_built_is_read_back(
    found: list[Record],
    codec: Codec,
    before: int,
    after: int,
    producer: tuple[int, int, int],
    leader_epoch: int,
    is_transactional: bool,
    is_control: bool,
    horizon: int | None,
    ahead: bytes,
) -> None:
    base_offset = max(0, found[0].offset - before)
    batch = build_batch(
        found,
        base_offset=base_offset,
        last_offset=found[-1].offset + after,
        codec=codec,
        leader_epoch=leader_epoch,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=is_transactional,
        is_control=is_control,
        delete_horizon_ms=horizon,
    )
    buffer = memoryview(ahead + batch + b"behind")
    header = read_header(buffer, len(ahead))
    check_header(header)
    check_crc(buffer, len(ahead), header)
    assert header == BatchHeader(
        base_offset=base_offset,
        length=len(batch) - 12,
        leader_epoch=leader_epoch,
        magic=2,
        crc=header.crc,
        attributes=codec + 16 * is_transactional + 32 * is_control + 64 * (horizon is not None),
        last_offset_delta=found[-1].offset + after - base_offset,
        base_timestamp=found[0].timestamp if horizon is None else horizon,
        max_timestamp=max(record.timestamp for record in found),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        record_count=len(found),
    )
    assert read_records(buffer, len(ahead), header, LIMIT_BYTES) == found


def test_null_and_empty_are_told_apart_and_header_keys_need_not_be_utf_8() -> None:
    found = [
        Record(0, 0, None, b"", ((b"\xff\xfe", None), (b"", b""))),
        Record(1, 0, b"", None),
    ]
    assert read_all(build_batch(found)) == found


def test_log_append_time_hides_the_records_own_times() -> None:
    batch = build_batch(V1_RECORDS, log_append_time_ms=5000)
    assert [record.timestamp for record in read_all(batch)] == [5000, 5000]
    assert read_header(batch).base_timestamp == V1_RECORDS[0].timestamp


def test_a_record_outside_the_range_of_its_batch_is_not_written() -> None:
    with pytest.raises(ValueError, match="outside"):
        build_batch(V1_RECORDS, base_offset=1)
    with pytest.raises(ValueError, match="outside"):
        build_batch(V1_RECORDS, last_offset=0)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a length beyond the end", "12" + "000000026b027600"),
        ("a negative length", "01"),
        ("a length that is too small", "0e" + "000000026b027600"),
        ("a key beyond the record", "10" + "000000086b027600"),
        ("a key length of minus two", "0c" + "000000030100"),
        ("a value beyond the record", "10" + "000000026b0a7600"),
        ("a negative header count", "0e" + "00000001026b01"),
        ("a header without a key", "10" + "0000000101020101"),
        ("headers that are not there", "10" + "000000026b0276" + "7e"),
        ("bytes after the last record", "10" + "000000026b027600" + "00"),
        ("nothing at all", ""),
    ],
)
def test_records_that_lie_about_their_lengths_are_corrupt(name: str, body: str) -> None:
    good = build_batch([Record(0, 0, b"k", b"v")])
    assert good[HEADER_BYTES:].hex() == "10000000026b027600"
    payload = bytes.fromhex(body)
    header = read_header(good)._replace(length=HEADER_BYTES - 12 + len(payload))
    with pytest.raises(CorruptMessage):
        read_records(bytes(good[:HEADER_BYTES]) + payload, 0, header, LIMIT_BYTES)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_is_not_the_number_of_records_is_corrupt(count: int) -> None:
    with pytest.raises(CorruptMessage):
        read_records(V1, 0, read_header(V1)._replace(record_count=count), LIMIT_BYTES)


def test_reading_keeps_to_its_limit_and_knows_five_codecs() -> None:
    header = read_header(V1)
    with pytest.raises(MessageTooLarge):
        read_records(V1, 0, header, len(V1) - HEADER_BYTES - 1)
    with pytest.raises(UnsupportedCompression):
        read_records(V1, 0, header._replace(attributes=5), LIMIT_BYTES)
