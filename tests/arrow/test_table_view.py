"""The latest record of each key: what a plain dictionary would hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow import table_view
from lamina.arrow.errors import DataLoss
from lamina.arrow.prefetching import RangeToFetch, ReadFiles
from lamina.arrow.table_view import Offsets, latest_offsets, read_latest
from tests.arrow.topics import SMALL_SEGMENTS, client, create, produce, update_until_compacted
from tests.broker.process import BrokerProcess
from tests.broker.test_compaction import QUICKLY

Start = Callable[..., BrokerProcess]

KEYS = st.one_of(st.none(), st.binary(max_size=2))


@given(st.lists(st.lists(KEYS, max_size=20), max_size=6), st.integers(1, 10))
def test_the_newest_offset_of_every_key_is_kept(batches: list[list[bytes | None]], merges_at: int) -> None:
    known: dict[bytes, int] = {}
    given_batches, offset = [], 0
    for keys in batches:
        offsets = list(range(offset, offset + 2 * len(keys), 2))
        offset += 2 * len(keys)
        known.update((key, at) for key, at in zip(keys, offsets, strict=True) if key is not None)
        given_batches.append(
            pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(offsets, pa.int64())], ["key", "offset"])
        )
    with patch.object(table_view, "_LEAST_ROWS_TO_MERGE", merges_at):
        assert latest_offsets(iter(given_batches)).tolist() == sorted(known.values())


def test_a_table_has_no_row_for_a_tombstone_and_changes_do(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, [(b"a", b"1"), (b"b", b"1"), (None, b"x"), (b"a", b"2"), (b"b", None), (b"c", b"3")])
    asked = RangeToFetch(topic, 0, 0, 6)

    def rows(end: int, **kept: bool) -> list[tuple[object, ...]]:
        batches = read_latest(
            client(broker.address), RangeToFetch(topic, 0, 0, end), ["key", "value", "partition"], **kept
        )
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    assert rows(asked.end) == [(b"a", b"2", 0), (b"c", b"3", 0)]
    assert rows(asked.end, keeps_tombstones=True) == [(b"a", b"2", 0), (b"b", None, 0), (b"c", b"3", 0)]
    assert rows(3) == [(b"a", b"1", 0), (b"b", b"1", 0)]
    assert rows(0) == []


KEYS_WRITTEN = [b"k%02d" % number for number in range(10)]


@pytest.fixture
def planned(own_broker: Start) -> tuple[BrokerProcess, RangeToFetch]:
    """A table of ten keys whose end was looked up, in a topic that is compacted quickly."""
    broker = own_broker(*QUICKLY)
    create(broker.address, "t", config=SMALL_SEGMENTS)
    produce(broker.address, "t", [(key, b"old") for key in KEYS_WRITTEN])
    return broker, RangeToFetch("t", 0, 0, 10)


def keys_of(broker: BrokerProcess, asked: RangeToFetch) -> list[bytes]:
    batches = read_latest(client(broker.address), asked, ["key"])
    return sorted(key for batch in batches for key in batch.column("key").to_pylist())


@pytest.mark.parametrize("read_files", [ReadFiles.NEVER, ReadFiles.AUTO])
def test_a_table_whose_end_nobody_named_loses_no_key_to_compaction(
    planned: tuple[BrokerProcess, RangeToFetch], read_files: ReadFiles
) -> None:
    broker, asked = planned
    asked = replace(asked, goes_on=True, read_files=read_files)
    assert keys_of(broker, asked) == KEYS_WRITTEN
    update_until_compacted(broker.address, broker.log_dir, "t", KEYS_WRITTEN)
    assert keys_of(broker, replace(asked, goes_on=False)) == []
    assert keys_of(broker, asked) == KEYS_WRITTEN
    produce(broker.address, "t", [(b"k03", None), (b"k10", b"new")])
    assert keys_of(broker, asked) == [*KEYS_WRITTEN[:3], *KEYS_WRITTEN[4:], b"k10"]


@pytest.mark.parametrize("goes_on", [False, True])
def test_what_is_compacted_between_the_two_passes_is_told(
    planned: tuple[BrokerProcess, RangeToFetch], goes_on: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broker, asked = planned
    asked = replace(asked, goes_on=goes_on)

    def first_pass(batches: Iterator[pa.RecordBatch]) -> Offsets:
        found = latest_offsets(batches)
        update_until_compacted(broker.address, broker.log_dir, "t", KEYS_WRITTEN[:4])
        return found

    told = "t-0 was compacted while it was read: 4 of 10 latest records were gone"
    with patch.object(table_view, "latest_offsets", first_pass), pytest.raises(DataLoss, match=told):
        keys_of(broker, asked)
    produce(broker.address, "t", [(key, b"newer") for key in KEYS_WRITTEN])
    with patch.object(table_view, "latest_offsets", first_pass):
        keys_of(broker, replace(asked, goes_on=True, tolerates_loss=True))
    assert "data loss: t-0 was compacted while it was read" in caplog.text
