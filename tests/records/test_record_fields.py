"""The one plain parser: what each lie of a record is called, and that all who build on it take and refuse the same."""

import pytest
from hypothesis import given, settings

from lamina.errors import CorruptMessage
from lamina.records.batch import BatchHeader, read_header
from lamina.records.record import read_records
from lamina.records.record_fields import parse_record
from lamina.records.record_walk import walk_records
from tests.examples import examples
from tests.records.forgery import with_payload
from tests.records.lying_records import payloads

LIMIT_BYTES = 1024 * 1024
WELL_FORMED = "10000000026b027600"

LIES = {
    "where record 3 should begin": "",
    "claims 9 bytes, 8 are left": "12000000026b027600",
    "claims -1 bytes, 0 are left": "01",
    "claims 7 bytes, its fields take 8": "0e000000026b027600",
    "claims 9 bytes, its fields take 8": "12000000026b02760000",
    "the key of record 3 reaches 4 bytes past the record": "10000000106b027600",
    "record 3 has a key of -2 bytes": "0c000000030100",
    "the value of record 3 reaches 1 bytes past the record": "10000000026b067600",
    "record 3 has a value of -2 bytes": "0c000000010300",
    "record 3 counts -1 headers": "0e00000001026b01",
    "record 3 counts 63 headers, more than 0 bytes can hold": "10000000026b02767e",
    "record 3 has a header without a key": "1000000001010201" + "01",
    "record 3 has a header with a value of -2 bytes": "1000000001010200" + "03",
    "a header of record 3 reaches 1 bytes past the record": "1000000001010200" + "0276",
    "end inside a number": "0a0000000180",
    "does not fit 32 bits": "1400" + "00" + "ffffffff7f" + "010100",
    "does not fit 64 bits": "1c00" + "ff" * 9 + "7f" + "00010100",
}


def fields_of(data: bytes) -> tuple[int, ...]:
    return parse_record(data, 0, len(data), 3)


def test_the_fields_of_a_record_are_found() -> None:
    assert fields_of(bytes.fromhex(WELL_FORMED)) == (9, 0, 0, 5, 1, 7, 1)
    assert fields_of(bytes.fromhex("0c000102010100")) == (7, -1, 1, 5, -1, 6, -1)


@pytest.mark.parametrize("sentence", LIES)
def test_each_lie_has_a_sentence(sentence: str) -> None:
    with pytest.raises(CorruptMessage) as raised:
        fields_of(bytes.fromhex(LIES[sentence]))
    assert sentence in str(raised.value)


def verdict_of_walk(payload: bytes, header: BatchHeader) -> str:
    try:
        walk_records(payload, header.record_count, 0, needs_keys=False, earliest_ms=-(2**63), latest_ms=2**63 - 1)
    except CorruptMessage as error:
        return str(error)
    return ""


def verdict_of_reading(batch: bytes, header: BatchHeader) -> str:
    try:
        read_records(batch, 0, header, LIMIT_BYTES)
    except CorruptMessage as error:
        return str(error)
    return ""


@settings(max_examples=examples(300))
@given(payloads)
def test_what_is_refused_is_unreadable_and_both_say_the_same(payload: tuple[bytes, int]) -> None:
    """The first is said to whoever sends the batch, the second to whoever looks at a stored one."""
    data, count = payload
    batch = bytes(with_payload(data))
    header = read_header(batch)._replace(record_count=count)
    said = verdict_of_reading(batch, header)
    assert said == verdict_of_walk(data, header)
    assert "\n" not in said
