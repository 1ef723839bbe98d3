import json
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.store.interface import Create, Entry, StoreError
from lamina.store.producer_ids import BLOCK_SIZE, END, LastBlock, NextId, ProducerIds
from lamina.store.sqlite import SqliteStore
from tests.examples import examples
from tests.store.ensembles import Ensemble
from tests.store.processes import running, temporary_store


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with temporary_store() as opened:
        yield opened


def test_blocks_follow_each_other(store: SqliteStore) -> None:
    ids = ProducerIds(store)
    assert [ids.next_block(), ids.next_block()] == [range(1000), range(1000, 2000)]


def test_a_block_begins_at_the_floor_where_the_logs_know_more_than_the_store(store: SqliteStore) -> None:
    ids = ProducerIds(store)
    assert ids.next_block(at_least=4321) == range(4321, 5321)
    assert ids.next_block(at_least=17) == range(5321, 6321)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(-1, 20_000)))
def test_no_id_is_given_twice_or_below_a_floor(floors: list[int]) -> None:
    with temporary_store() as store:
        blocks = [ProducerIds(store).next_block(floor) for floor in floors]
    assert all(block.start >= floor for block, floor in zip(blocks, floors, strict=True))
    assert all(len(block) == BLOCK_SIZE for block in blocks)
    assert all(earlier.stop <= later.start for earlier, later in pairwise(blocks))


class ContestedStore(SqliteStore):
    """Another broker takes a block after each of the first three looks."""

    def __init__(self, path: str, rival: list[range]) -> None:
        super().__init__(path)
        self.rival = rival
        self.is_rivals_turn = False

    def get(self, path: str) -> Entry | None:
        found = super().get(path)
        if not self.is_rivals_turn and len(self.rival) < 3:
            self.is_rivals_turn = True
            self.rival.append(ProducerIds(self).next_block())
            self.is_rivals_turn = False
        return found


def test_a_block_that_another_broker_takes_first_is_left_to_it(tmp_path: Path) -> None:
    rival: list[range] = []
    with closing(ContestedStore(str(tmp_path / "metadata.db"), rival)) as store:
        assert ProducerIds(store).next_block() == range(3000, 4000)
    assert rival == [range(1000), range(1000, 2000), range(2000, 3000)]


def test_the_last_ids_are_not_exceeded(store: SqliteStore) -> None:
    ids = ProducerIds(store)
    assert ids.next_block(END - BLOCK_SIZE).stop == END
    with pytest.raises(StoreError, match="no producer ids left"):
        ids.next_block()


def test_in_zookeeper_the_last_block_is_kept_as_kafka_keeps_it(ensemble: Ensemble) -> None:
    """zookeeper.md 6.1: /latest_producer_id_block, both ends included."""
    store = ensemble.connect()
    first, second = ProducerIds(store, LastBlock(1)), ProducerIds(ensemble.connect(), LastBlock(2))
    assert [first.next_block(), second.next_block(), first.next_block()] == [
        range(1000),
        range(1000, 2000),
        range(2000, 3000),
    ]
    found = store.get("/latest_producer_id_block")
    assert found is not None
    assert json.loads(found.value) == {"version": 1, "broker": 1, "block_start": "2000", "block_end": "2999"}
    second.skip_to(5000)
    assert first.next_id() == 5000


@pytest.mark.parametrize("value", [b"{}", b"[]", b'{"block_end":"x"}', b'{"block_end":"-9"}'])
def test_a_damaged_block_is_named(store: SqliteStore, value: bytes) -> None:
    store.transact([Create(LastBlock.path, value)])
    with pytest.raises(StoreError, match="/latest_producer_id_block in the metadata store is not a number"):
        ProducerIds(store, LastBlock(1)).next_block()


@pytest.mark.parametrize("value", [b"{}", b"1e999", b"-1", b"[" * 100_000])
def test_a_damaged_value_is_named(store: SqliteStore, value: bytes) -> None:
    store.transact([Create(NextId.path, value)])
    with pytest.raises(StoreError, match="/producer_ids in the metadata store is not a number"):
        ProducerIds(store).next_block()


def test_brokers_killed_with_a_block_in_hand_have_disjoint_ids(tmp_path: Path) -> None:
    """Hundreds of them."""
    with running("tests.store.take_blocks_and_die", str(tmp_path / "metadata.db"), "300") as process:
        assert process.stdout is not None
        blocks = [range(*map(int, line.split())) for line in process.stdout]
    assert len(blocks) == 300
    assert all(earlier.stop <= later.start for earlier, later in pairwise(blocks))
