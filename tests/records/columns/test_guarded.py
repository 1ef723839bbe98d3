"""The native reader accesses nothing outside of the batches that it was given and the columns that it fills.

Its own source is run by Python over guarded memory, and gives what the compiled code gives.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from lamina.errors import CorruptMessage
from lamina.records.batch import HEADER_BYTES, Codec
from lamina.records.columns import checking, filling, headers, reading, windows
from lamina.records.columns.arrow import MIN_BATCH_BYTES
from lamina.records.columns.buffers import ColumnBuffers
from lamina.records.columns.headers import Rows
from lamina.records.columns.memory import Bytes
from tests.examples import examples
from tests.records.columns.test_arrow import logs, read, rows
from tests.records.columns.test_windows import windows_of
from tests.records.forgery import reseal, with_payload
from tests.records.guarded import Array, GuardedMemory, interpreted
from tests.records.lying_records import payloads

FEW = settings(max_examples=examples(60), deadline=None)


@contextmanager
def guarded() -> Iterator[None]:
    """The kernels of the reader are run by Python; CRCs are left alone."""
    memory = GuardedMemory()
    fill = interpreted(memory, filling.fill_columns, filling)
    read_headers = interpreted(memory, headers.read_headers, headers)
    count_whole = interpreted(memory, windows.count_whole, windows)
    new_array = ColumnBuffers._new_array

    def fill_guarded(data: Bytes, payload: Bytes, *others: Any) -> Any:
        memory.lend(data)
        memory.lend(payload)
        return fill(data, payload, *others)

    def read_headers_guarded(data: Bytes, position: int, due: int, _: bool, most_bytes: int, rows: Rows) -> Any:
        memory.lend(data)
        return read_headers(data, position, due, False, most_bytes, rows)

    def count_guarded(records: Bytes, most: int) -> Any:
        memory.lend(records)
        return count_whole(records, most)

    def new_array_guarded(self: ColumnBuffers, number: int) -> Array:
        return memory.lend(new_array(self, number))

    with (
        patch.object(filling, "fill_columns", fill_guarded),
        patch.object(reading, "read_headers", read_headers_guarded),
        patch.object(windows, "count_whole", count_guarded),
        patch.object(ColumnBuffers, "_new_array", new_array_guarded),
        np.errstate(over="ignore"),
    ):
        yield


def outcome(data: bytes | bytearray, max_batch_bytes: int = MIN_BATCH_BYTES) -> list[dict[str, Any]] | str:
    try:
        return rows(read(data, max_batch_bytes=max_batch_bytes))
    except CorruptMessage as error:
        return str(error)


@FEW
@given(logs(), st.sampled_from([1, 4096]))
def test_reading_logs_accesses_nothing_else(data: bytearray, max_batch_bytes: int) -> None:
    compiled = outcome(data, max_batch_bytes)
    with guarded():
        assert outcome(data, max_batch_bytes) == compiled


@FEW
@given(logs(), st.integers(1, 60))
def test_reading_logs_in_windows_accesses_nothing_else(data: bytearray, window_bytes: int) -> None:
    with windows_of(window_bytes):
        compiled = outcome(data)
        with guarded():
            assert outcome(data) == compiled


@FEW
@given(payloads, st.sampled_from([Codec.NONE, Codec.GZIP]), st.integers(0, 2000), st.integers(0, 9))
def test_reading_records_that_lie_accesses_nothing_else(
    payload: tuple[bytes, int], codec: Codec, last_delta: int, cut: int
) -> None:
    data, count = payload
    batch = reseal(with_payload(data, codec=codec), record_count=count, last_offset_delta=last_delta)
    batch = batch[: len(batch) - cut]
    compiled = outcome(batch)
    with guarded():
        assert outcome(batch) == compiled


@FEW
@given(st.binary(max_size=2 * HEADER_BYTES))
def test_reading_noise_accesses_nothing_else(data: bytes) -> None:
    with guarded():
        outcome(data)


@FEW
@given(payloads, st.integers(0, 2000), st.booleans())
def test_checking_records_accesses_nothing_else(payload: tuple[bytes, int], last_delta: int, is_stamped: bool) -> None:
    data, count = payload
    memory = GuardedMemory()
    records = memory.lend(np.frombuffer(data, np.uint8))
    check = interpreted(memory, checking.check_records, checking)
    compiled = checking.check_records(records, count, last_delta, 0, 0, is_stamped)
    assert check(records, count, last_delta, 0, 0, is_stamped) == compiled
