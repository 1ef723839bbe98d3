"""The bytes of ``__consumer_offsets`` (internal-topics.md §3.1)."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.records.group_codec import decode_record, encode_record
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberValue,
    GroupRecord,
    OffsetKey,
    OffsetValue,
    PartitionMetadataKey,
    PartitionMetadataValue,
)
from lamina.errors import CorruptMessage
from lamina.records.batch import walk
from lamina.records.record import read_records
from tests.coordinators.strategies import group_records
from tests.fixtures.kafka_data import load_fixture

OFFSET_KEY = bytes.fromhex("000100016700017400000000")


@given(group_records)
def test_what_is_written_is_read_back(record: GroupRecord) -> None:
    assert decode_record(*encode_record(record)) == record


def test_the_vectors_of_the_facts() -> None:
    value = OffsetValue(42, 7, "", 1000)
    in_version_3 = bytes.fromhex("0003000000000000002a00000007000000000000000003e8")
    assert decode_record(OFFSET_KEY, in_version_3) == GroupRecord(OffsetKey("g", "t", 0), value)
    assert encode_record(GroupRecord(OffsetKey("g", "t", 0), value))[0] == OFFSET_KEY
    assert encode_record(GroupRecord(ClassicGroupKey("g"), None)) == (bytes.fromhex("0002000167"), None)


def test_an_offset_is_written_in_version_4_with_the_topic_id_as_a_tag() -> None:
    plain = encode_record(GroupRecord(OffsetKey("g", "t", 0), OffsetValue(42, 7, "m", 1000)))[1]
    assert plain == bytes.fromhex("0004000000000000002a00000007026d00000000000003e800")
    tagged = encode_record(GroupRecord(OffsetKey("g", "t", 0), OffsetValue(42, 7, "m", 1000, None, bytes(range(16)))))[
        1
    ]
    assert tagged == plain[:-1] + bytes([1, 0, 16, *range(16)])


def test_an_offset_with_an_expiry_of_its_own_is_written_in_version_1() -> None:
    _, value = encode_record(GroupRecord(OffsetKey("g", "t", 0), OffsetValue(42, -1, "", 1000, 2000)))
    assert value == bytes.fromhex("0001000000000000002a000000000000000003e800000000000007d0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0000000000000000002a00016d00000000000003e8", OffsetValue(42, -1, "m", 1000)),
        ("0001000000000000002a00016d00000000000003e8ffffffffffffffff", OffsetValue(42, -1, "m", 1000)),
        ("0001000000000000002a00016d00000000000003e800000000000007d0", OffsetValue(42, -1, "m", 1000, 2000)),
        ("0002000000000000002a00016d00000000000003e8", OffsetValue(42, -1, "m", 1000)),
    ],
)
def test_offsets_of_older_kafkas_are_read(text: str, expected: OffsetValue) -> None:
    assert decode_record(b"\0\0" + OFFSET_KEY[2:], bytes.fromhex(text)) == GroupRecord(OffsetKey("g", "t", 0), expected)


def test_a_classic_group_of_version_0_has_no_rebalance_timeout_but_its_session() -> None:
    member = b"\0\x01m" + b"\0\x01c" + b"\0\x01h" + (30).to_bytes(4) + (1).to_bytes(4) + b"s" + (1).to_bytes(4) + b"a"
    value = b"\0\0" + b"\0\x08consumer" + (3).to_bytes(4) + b"\0\x05range" + b"\0\x01m" + (1).to_bytes(4) + member
    assert decode_record(bytes.fromhex("0002000167"), value) == GroupRecord(
        ClassicGroupKey("g"),
        ClassicGroupValue(
            "consumer", 3, "range", "m", -1, (ClassicMemberValue("m", None, "c", "h", 30, 30, b"s", b"a"),)
        ),
    )


def test_the_metadata_of_partitions_is_known_but_not_looked_into() -> None:
    record = decode_record(bytes.fromhex("0004000167"), b"\0\0anything")
    assert record == GroupRecord(PartitionMetadataKey("g"), PartitionMetadataValue())


@pytest.mark.parametrize("version", [9, 10, 15, 17, 99])
def test_a_kind_of_record_that_is_not_known_is_skipped(version: int) -> None:
    assert decode_record(version.to_bytes(2) + b"\0\x01g", b"\0\0") is None


def test_a_record_without_a_key_is_corrupt() -> None:
    with pytest.raises(CorruptMessage):
        decode_record(None, b"")


@given(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 16]), st.binary(max_size=40), st.none() | st.binary(max_size=60))
def test_bytes_that_are_no_record_are_corrupt_and_nothing_else(version: int, key: bytes, value: bytes | None) -> None:
    try:
        decode_record(version.to_bytes(2) + key, value)
    except CorruptMessage as error:
        assert str(error)


@given(group_records, st.data())
def test_a_record_that_was_cut_short_is_corrupt(record: GroupRecord, data: st.DataObject) -> None:
    key, value = encode_record(record)
    with pytest.raises(CorruptMessage):
        decode_record(key[: data.draw(st.integers(0, len(key) - 1))], value)
    if value is not None:
        cut = value[: data.draw(st.integers(0, len(value) - 1))]
        with contextlib.suppress(CorruptMessage):
            assert decode_record(key, cut) == record, "only what follows the last field may be missing"


def test_what_kafka_wrote_is_read_and_written_again_as_it_was(tmp_path: Path) -> None:
    """Kafka's own records of committed offsets and classic groups, byte for byte."""
    directory = load_fixture(tmp_path).clean.directory
    seen = set()
    for log in sorted(directory.glob("__consumer_offsets-*/*.log")):
        data = log.read_bytes()
        for position, header in walk(data):
            if header.is_control:
                continue
            for record in read_records(data, position, header, 1 << 20):
                decoded = decode_record(record.key, record.value)
                assert decoded is not None
                assert encode_record(decoded) == (record.key, record.value)
                seen.add(type(decoded.key))
    assert OffsetKey in seen
