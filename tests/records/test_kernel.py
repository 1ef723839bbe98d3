"""The compiled walk against the plain one: the same answer or the same error, and no read outside the records."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import CorruptMessage, KafkaError
from lamina.records.batch import HEADER_BYTES, Buffer, Codec
from lamina.records.record import Record, build_batch
from lamina.records.record_fields import Fields, parse_record
from lamina.records.record_walk import MAX_RECORD_ERRORS, RecordFault, RecordWalk, Walk, walk_records
from lamina.records.validate import validate_batch
from tests.examples import examples
from tests.records.lying_records import INT64_MAX, INT64_MIN, int64s, payloads
from tests.records.strategies import records
from tests.records.test_validate import BAD_BATCHES, NOW_MS, RULES

pytest.importorskip("numba")

from numba import njit

from lamina.records import kernel
from lamina.records.columns.memory import Bytes, address_of
from lamina.records.columns.numbers import BAD, read_record, read_varint
from tests.records.guarded import GuardedMemory, interpreted, walk_guarded


def outcome(walk: Walk, data: Buffer, count: int, base: int, **rules: Any) -> RecordWalk | str:
    try:
        return walk(data, count, base, **rules)
    except CorruptMessage as error:
        return str(error)


@njit()
def native_fields(records: Bytes, position: int) -> tuple[int, int, int, int, int, int, int]:
    found = read_record(address_of(records), position, len(records))
    end, _, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length = found
    return end, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length


def plain_fields(records: Buffer, position: int) -> Fields | None:
    try:
        return parse_record(records, position, len(records), 0)
    except CorruptMessage:
        return None


@settings(max_examples=examples(300))
@given(payloads, st.integers(0, 80))
def test_both_parsers_find_the_same_fields_or_none(payload: tuple[bytes, int], position: int) -> None:
    data = payload[0]
    position = min(position, len(data))
    native = native_fields(np.frombuffer(data, np.uint8), position)
    assert (None if native[0] == BAD else native) == plain_fields(data, position)


@settings(max_examples=examples(300))
@given(payloads)
def test_both_parsers_find_the_same_fields_record_by_record(payload: tuple[bytes, int]) -> None:
    data, position = payload[0], 0
    while (plain := plain_fields(data, position)) is not None:
        assert native_fields(np.frombuffer(data, np.uint8), position) == plain
        position = plain[0]
    assert native_fields(np.frombuffer(data, np.uint8), position)[0] == BAD


@settings(max_examples=examples(300))
@given(payloads, int64s, st.booleans(), int64s, int64s, st.sampled_from([bytes, bytearray, memoryview]))
def test_both_walks_give_the_same_answer_or_the_same_error(
    payload: tuple[bytes, int], base: int, needs_keys: bool, earliest_ms: int, latest_ms: int, kind: type
) -> None:
    data, count = payload
    rules = {"needs_keys": needs_keys, "earliest_ms": earliest_ms, "latest_ms": latest_ms}
    plain = outcome(walk_records, data, count, base, **rules)
    assert outcome(kernel.walk_natively, kind(data), count, base, **rules) == plain


@given(records(first_offset=0), st.integers(-(2**70), INT64_MAX), st.integers(INT64_MIN, 2**70))
def test_bounds_beyond_64_bits_are_no_bounds(found: list[Record], earliest_ms: int, latest_ms: int) -> None:
    data = build_batch(found)[HEADER_BYTES:]
    rules = {"needs_keys": False, "earliest_ms": earliest_ms, "latest_ms": latest_ms}
    plain = outcome(walk_records, data, len(found), found[0].timestamp, **rules)
    assert outcome(kernel.walk_natively, data, len(found), found[0].timestamp, **rules) == plain


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_a_good_batch_is_taken_with_the_same_facts(codec: Codec, count: int) -> None:
    batch = build_batch([Record(index, index % 7, b"k", b"v" * 100) for index in range(count)], codec=codec)
    assert validate_batch(batch, RULES, NOW_MS, kernel.walk_natively) == validate_batch(batch, RULES, NOW_MS)


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_batch_that_breaks_a_rule_gets_the_same_error(name: str) -> None:
    _, build = BAD_BATCHES[name]
    errors = []
    for walk in (walk_records, kernel.walk_natively):
        with pytest.raises(KafkaError) as caught:
            validate_batch(build(), RULES, NOW_MS, walk)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_only_the_first_thousand_faults_are_named() -> None:
    count = MAX_RECORD_ERRORS + 5
    data = build_batch([Record(index, 0, None, b"") for index in range(count)])[HEADER_BYTES:]
    walk = kernel.walk_natively(data, count, 0, needs_keys=True, earliest_ms=0, latest_ms=0)
    assert walk.faults == [(index, RecordFault.NO_KEY) for index in range(MAX_RECORD_ERRORS)]


@pytest.mark.parametrize("walk", [walk_records, kernel.walk_natively])
def test_what_follows_the_last_fault_that_is_named_is_not_looked_at(walk: Walk) -> None:
    faulty = build_batch([Record(index, index, None, b"") for index in range(MAX_RECORD_ERRORS)])[HEADER_BYTES:]
    found = walk(bytes(faulty) + b"noise", 2 * MAX_RECORD_ERRORS, 0, needs_keys=True, earliest_ms=0, latest_ms=5000)
    last = MAX_RECORD_ERRORS - 1
    assert found == (last, last, [(index, RecordFault.NO_KEY) for index in range(MAX_RECORD_ERRORS)])


@njit()
def read_behind(data: Any) -> Any:
    return read_varint(address_of(data), len(data), len(data) + 2)


def test_the_guard_notices_a_read_behind_the_end() -> None:
    guarded = GuardedMemory()
    data = guarded.lend(np.frombuffer(b"abc", np.uint8))
    with pytest.raises(AssertionError, match="1 bytes at 3 are outside"):
        interpreted(guarded, read_behind)(data)


@given(payloads, st.booleans())
def test_the_kernel_reads_nothing_outside_the_records(payload: tuple[bytes, int], needs_keys: bool) -> None:
    data, count = payload
    walk_guarded(data, count, 0, needs_keys, 0, 0)
