"""The bytes of ``__transaction_state`` (internal-topics.md §3.2)."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import (
    NO_PRODUCER_ID,
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from lamina.errors import CorruptMessage
from tests.coordinators.strategies import transaction_records

KEY = bytes.fromhex("000000027478")
EMPTY = TransactionValue(1000, 0, 60_000, Status.EMPTY, frozenset(), 5)
EMPTY_IN_VERSION_0 = bytes.fromhex("000000000000000003e800000000ea6000ffffffff0000000000000005ffffffffffffffff")
ONGOING = EMPTY._replace(
    status=Status.ONGOING, partitions=frozenset({("b", 1), ("a", 3), ("a", 2)}), start_timestamp_ms=4
)


@given(transaction_records, st.integers(0, 2))
def test_what_is_written_is_read_back(record: TransactionRecord, transaction_version: int) -> None:
    read = decode_record(*encode_record(record, transaction_version))
    assert read is not None
    if transaction_version or record.value is None or record.value.client_transaction_version > 0:
        assert read == record
    else:
        plain = record.value._replace(
            previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0, next_producer_epoch=-1
        )
        assert read == TransactionRecord(record.key, plain)


def test_the_vectors_of_the_facts() -> None:
    record = TransactionRecord(TransactionKey("tx"), EMPTY)
    assert encode_record(record, 0) == (KEY, EMPTY_IN_VERSION_0)
    assert decode_record(KEY, EMPTY_IN_VERSION_0) == record
    assert encode_record(TransactionRecord(TransactionKey("tx"), None)) == (KEY, None)


def test_partitions_are_sorted_by_topic_and_null_only_in_empty() -> None:
    head = "00000000000003e800000000ea60"
    times = "00000000000000050000000000000004"
    _, ongoing = encode_record(TransactionRecord(TransactionKey("tx"), ONGOING), 0)
    topics = "00000002" + "000161" + "000000020000000200000003" + "000162" + "0000000100000001"
    assert ongoing is not None
    assert ongoing.hex() == "0000" + head + "01" + topics + times
    complete = ONGOING._replace(status=Status.COMPLETE_COMMIT, partitions=frozenset())
    _, ended = encode_record(TransactionRecord(TransactionKey("tx"), complete), 0)
    assert ended is not None
    assert ended.hex() == "0000" + head + "04" + "00000000" + times


def test_from_level_1_on_values_are_flexible_and_carry_tags() -> None:
    value = ONGOING._replace(
        partitions=frozenset({("a", 2)}), previous_producer_id=7, next_producer_id=8, client_transaction_version=2
    )
    _, data = encode_record(TransactionRecord(TransactionKey("tx"), value), 1)
    assert data is not None
    assert data.hex() == (
        "0001" + "00000000000003e8" + "0000" + "0000ea60" + "01" + "02" + "0261" + "02" + "00000002" + "00"
        "0000000000000005" + "0000000000000004"
        "03" + "0008" + "0000000000000007" + "0108" + "0000000000000008" + "0202" + "0002"
    )


def test_a_change_made_in_version_2_is_written_with_its_tags_even_at_level_0() -> None:
    value = ONGOING._replace(next_producer_id=8, client_transaction_version=2)
    read = decode_record(*encode_record(TransactionRecord(TransactionKey("tx"), value), 0))
    assert read is not None
    assert read.value == value


def test_tags_that_are_not_known_are_passed_over() -> None:
    _, data = encode_record(TransactionRecord(TransactionKey("tx"), EMPTY), 2)
    assert data is not None
    assert data.endswith(b"\x00")
    read = decode_record(KEY, data[:-1] + bytes([1, 99, 2, 1, 2]))
    assert read is not None
    assert read.value == EMPTY


def test_every_status_has_kafkas_number_and_name() -> None:
    assert [(status.value, status.state_name) for status in Status] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]


def test_keys_of_other_versions_are_not_known_here() -> None:
    assert decode_record(bytes.fromhex("000100027478"), b"whatever") is None
    assert decode_record(bytes.fromhex("ffff"), None) is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, EMPTY_IN_VERSION_0, "has no key"),
        (b"", None, "cannot be read"),
        (KEY[:-1], None, "cannot be read"),
        (KEY, b"", "cannot be read"),
        (KEY, bytes.fromhex("0002") + EMPTY_IN_VERSION_0[2:], "version 2"),
        (KEY, EMPTY_IN_VERSION_0[:-1], "cannot be read"),
        (KEY, EMPTY_IN_VERSION_0[:16] + b"\x08" + EMPTY_IN_VERSION_0[17:], "status 8"),
        (KEY, EMPTY_IN_VERSION_0[:17] + b"\x7f\xff\xff\xff" + EMPTY_IN_VERSION_0[21:], "cannot be read"),
        (KEY, bytes.fromhex("0001") + EMPTY_IN_VERSION_0[2:17] + bytes(17) + bytes([1, 0, 2, 0, 0]), "cannot be read"),
    ],
)
def test_bytes_that_are_no_record_are_corrupt(key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(CorruptMessage, match=reason):
        decode_record(key, value)


@given(st.binary(max_size=60), st.integers(0, 1))
def test_random_bytes_are_read_or_corrupt(data: bytes, version: int) -> None:
    with contextlib.suppress(CorruptMessage):
        decode_record(KEY, bytes([0, version]) + data)


@given(transaction_records, st.data())
def test_a_value_that_is_cut_off_is_corrupt(record: TransactionRecord, data: st.DataObject) -> None:
    key, value = encode_record(record)
    if value is not None:
        end = data.draw(st.integers(0, len(value) - 1))
        with pytest.raises(CorruptMessage):
            decode_record(key, value[:end])


def test_no_producer_id_is_written_as_nothing() -> None:
    assert EMPTY.previous_producer_id == EMPTY.next_producer_id == NO_PRODUCER_ID
    _, data = encode_record(TransactionRecord(TransactionKey("tx"), EMPTY), 2)
    assert data is not None
    assert data.hex().endswith("00" + "0000000000000005" + "ffffffffffffffff" + "00")
