"""The compiled walk against the plain one: the same answer or the same error, and no read outside the records."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import CorruptMessage, KafkaError
from lamina.records.batch import HEADER_BYTES, Buffer, Codec
from lamina.records.record import Record, build_batch
from lamina.records.record_walk import MAX_RECORD_ERRORS, RecordFault, RecordWalk, Walk, walk_records
from lamina.records.validate import validate_batch
from tests.examples import examples
from tests.records.strategies import records
from tests.records.test_validate import BAD_BATCHES, NOW_MS, RULES

pytest.importorskip("numba")

from numba import njit

from lamina.records import kernel
from lamina.records.columns.memory import address_of
from lamina.records.columns.numbers import read_varint
from tests.records.guarded import GuardedMemory, interpreted, walk_guarded

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_int64 = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([INT64_MIN, -1, 0, INT64_MAX])


def number(value: int, least_bytes: int = 1, excess: int = 0) -> bytes:
    """A varint in more bytes than it needs, or with bits beyond its width."""
    zigzag = ((value << 1) ^ (value >> 63)) + excess
    out = bytearray()
    while zigzag > 0x7F or len(out) < least_bytes - 1:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


@st.composite
def odd_number(draw: st.DrawFn, value: int, width: int = 32) -> bytes:
    """Mostly the number as it should be; now and then long, too long, too wide, or another."""
    match draw(st.integers(0, 40)):
        case 0:
            return number(value, draw(st.integers(2, 11)))
        case 1:
            return number(value, excess=1 << width)
        case 2:
            return number(draw(_int64))
        case 3:
            return number(value + draw(st.integers(-2, 2)))
    return number(value)


@st.composite
def field(draw: st.DrawFn) -> bytes:
    """A length and that many bytes; now and then null, or less than null."""
    data = draw(st.binary(max_size=5))
    length = draw(st.sampled_from([len(data)] * 8 + [-1, -1, -2]))
    return draw(odd_number(length)) + (data if length >= 0 else b"")


@st.composite
def forged(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records written field by field, most of them right, any of them wrong; lengths fit what was written."""
    out = bytearray()
    count = draw(st.integers(1, 4))
    for index in range(count):
        headers = draw(st.lists(field(), max_size=2))
        header_count = len(headers) if headers else draw(st.sampled_from([0] * 8 + [-1]))
        body = b"\0" + draw(odd_number(draw(st.integers(-5, 5)), 64)) + draw(odd_number(index))
        body += draw(field()) + draw(field()) + draw(odd_number(header_count))
        body += b"".join(key + draw(field()) for key in headers)
        out += draw(odd_number(len(body))) + body
    return bytes(out), count


@st.composite
def changed(draw: st.DrawFn) -> tuple[bytes, int]:
    """A client's records with bytes put in or cut out, or with another count."""
    found = draw(records(first_offset=0, most=6))
    data = bytes(build_batch(found)[HEADER_BYTES:])
    at = draw(st.integers(0, len(data)))
    data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 5)) :]
    return data, len(found) + draw(st.integers(-1, 1))


_noise = st.tuples(st.binary(max_size=80), st.sampled_from([0, 1, 2, 2**31 - 1]))
payloads = forged() | forged() | changed() | _noise


def outcome(walk: Walk, data: Buffer, count: int, base: int, **rules: Any) -> RecordWalk | str:
    try:
        return walk(data, count, base, **rules)
    except CorruptMessage as error:
        return str(error)


@settings(max_examples=examples(300))
@given(payloads, _int64, st.booleans(), _int64, _int64, st.sampled_from([bytes, bytearray, memoryview]))
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
