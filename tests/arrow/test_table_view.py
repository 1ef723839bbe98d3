"""The latest record of each key: what a plain dictionary would hold."""

from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow import table_view
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.table_view import latest_offsets, read_latest
from tests.arrow.topics import client, create, produce
from tests.broker.process import BrokerProcess

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
