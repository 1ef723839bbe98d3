"""A batch that is read in windows gives what it gives when it is read whole, in little memory."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from lamina.errors import CorruptMessage, MessageTooLarge
from lamina.records.batch import HEADER_BYTES, Codec
from lamina.records.columns import reading
from lamina.records.columns.arrow import MIN_BATCH_BYTES
from lamina.records.columns.windows import MOST_RECORD_BYTES, record_windows
from lamina.records.record import Record, build_batch
from lamina.records.varint import append_varint
from tests.records.columns.test_arrow import EVERYTHING, logs, plain_rows, read, rows
from tests.records.forgery import reseal, with_payload
from tests.records.strategies import records

CODECS = [codec for codec in Codec if codec is not Codec.NONE]
MIB = 1024 * 1024


@contextmanager
def windows_of(size_bytes: int) -> Iterator[None]:
    """Every compressed batch with a record is too large to be read whole."""
    with patch.object(reading, "_WHOLE_BYTES", 0), patch.object(reading, "WINDOW_BYTES", size_bytes):
        yield


@given(logs(), st.integers(1, 100), st.sampled_from([1, MIN_BATCH_BYTES, 1 << 20]), st.data())
def test_windows_give_what_the_plain_reader_reads(
    data: bytearray, window_bytes: int, max_batch_bytes: int, choices: st.DataObject
) -> None:
    near = st.sampled_from([row["offset"] for row in plain_rows(data)] or [0])
    for offsets in (EVERYTHING, (choices.draw(near), choices.draw(near))):
        with windows_of(window_bytes):
            assert rows(read(data, offsets, max_batch_bytes=max_batch_bytes)) == plain_rows(data, offsets)


@given(records(), st.sampled_from(CODECS), st.integers(1, 100), st.data())
def test_any_changed_byte_is_read_or_refused_as_in_whole_batches(
    found: list[Record], codec: Codec, window_bytes: int, choices: st.DataObject
) -> None:
    payload = bytearray(build_batch(found)[HEADER_BYTES:])
    for _ in range(choices.draw(st.integers(1, 3))):
        payload[choices.draw(st.integers(0, len(payload) - 1))] = choices.draw(st.integers(0, 255))
    packed = with_payload(bytes(payload), codec=codec)
    count = len(found) + choices.draw(st.sampled_from([-1, 0, 0, 0, 1]))
    data = reseal(packed, record_count=count, last_offset_delta=max(len(found) - 1, 0))

    def outcome() -> list[dict[str, Any]] | None:
        try:
            return rows(read(data))
        except CorruptMessage as error:
            assert str(error).startswith("orders-0 is damaged at position 0, offset 0: ")
            return None

    whole = outcome()
    with windows_of(window_bytes):
        assert outcome() == whole


@pytest.mark.parametrize(
    ("payload", "count", "reason"),
    [
        (b"\x02\0", 2, "there are 1 records, and the header counts 2"),
        (b"\x02\0\x02\0", 1, "bytes follow the last of 1 records"),
        (b"\x02\0\x08\0\0", 2, "record 1 takes 5 bytes, 3 are left"),
        (b"\x02\0\x80\x80", 2, "record 1 takes 3 bytes, 2 are left"),
        (b"\x02\0" + b"\xff" * 9, 2, "record 1 does not begin with its length"),
        (b"\x02\0\x01\0", 2, "record 1 does not begin with its length"),
    ],
)
def test_pieces_that_are_not_the_records_that_were_counted(payload: bytes, count: int, reason: str) -> None:
    for window_bytes in (1, 100):
        pieces = iter([payload[at : at + 1] for at in range(len(payload))])
        with pytest.raises(CorruptMessage) as raised:
            list(record_windows(pieces, count, window_bytes))
        assert str(raised.value) == reason


def test_a_record_that_claims_too_much_is_refused_before_it_is_collected() -> None:
    claimed = MOST_RECORD_BYTES + 1
    start = bytearray()
    append_varint(start, claimed)
    taken = []

    def pieces() -> Iterator[bytes]:
        for number in range(1_000):
            taken.append(number)
            yield (bytes(start) if number == 0 else b"") + bytes(MIB)

    sentence = f"^record 0 takes {claimed + len(start)} bytes, and {MOST_RECORD_BYTES} are the most$"
    with pytest.raises(MessageTooLarge, match=sentence):
        list(record_windows(pieces(), 1, 4 * MIB))
    assert len(taken) == 4
    data = reseal(with_payload(bytes(start) + bytes(9 * MIB), codec=Codec.GZIP), record_count=1)
    with pytest.raises(
        MessageTooLarge, match=r"^orders-0: a compressed batch at offset 0 cannot be read: record 0 takes"
    ):
        rows(read(data))


def test_a_record_that_lies_in_a_window_is_told_by_its_number_in_the_batch() -> None:
    payload = bytearray(build_batch([Record(number, 0, b"k", b"v") for number in range(9)])[HEADER_BYTES:])
    payload[len(payload) // 9 * 7 + 4] = 0x7F  # the length of a key
    data = reseal(with_payload(bytes(payload), codec=Codec.GZIP), record_count=9, last_offset_delta=8)
    with windows_of(30), pytest.raises(CorruptMessage, match="offset 0: record 7 "):
        rows(read(data))


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_250_mib_is_read_in_a_small_part_of_that(codec: Codec) -> None:
    command = [sys.executable, "-m", "tests.records.columns.measure_reading", codec.name, "250"]
    count, peak_bytes = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
    assert count == 250
    assert peak_bytes < 64 * MIB
