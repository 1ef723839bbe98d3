"""Which transactions that are open in a backup are ended by the coordinator that loads it, and which have ended."""

from pathlib import Path

import pytest

from lamina.coordinators.records.transaction_codec import encode_record
from lamina.coordinators.records.transaction_records import (
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from lamina.log.files import Disk
from lamina.offline.taken_transactions import TakenTransactions
from lamina.records.record import Record, build_batch
from tests.log.building import NOW_MS

HERE, ELSEWHERE = ("orders", 0), ("others", 1)
PRODUCER = 7


def state(status: Status, epoch: int, *partitions: tuple[str, int], producer_id: int = PRODUCER) -> TransactionValue:
    return TransactionValue(
        producer_id, epoch, 1000, status, frozenset(partitions), NOW_MS, previous_producer_id=producer_id
    )


def taken(tmp_path: Path, *values: TransactionValue | None) -> TakenTransactions:
    """One transactional id through these states."""
    key = TransactionKey("t")
    records = [
        Record(number, NOW_MS, *encode_record(TransactionRecord(key, value))) for number, value in enumerate(values)
    ]
    (tmp_path / f"{0:020d}.log").write_bytes(build_batch(records))
    found = TakenTransactions(Disk())
    found.read(str(tmp_path))
    return found


@pytest.mark.parametrize(
    "value",
    [
        state(Status.ONGOING, 3, HERE),
        state(Status.PREPARE_COMMIT, 3, HERE, ELSEWHERE),
        state(Status.PREPARE_ABORT, 4, HERE),
    ],
)
def test_its_coordinator_ends_what_is_still_open_there(tmp_path: Path, value: TransactionValue) -> None:
    assert not taken(tmp_path, state(Status.EMPTY, 1), value).ended(HERE, {PRODUCER: 3})


@pytest.mark.parametrize(
    "value",
    [
        state(Status.COMPLETE_COMMIT, 3),
        state(Status.COMPLETE_ABORT, 4),
        state(Status.ONGOING, 4, HERE),
        state(Status.ONGOING, 3, ELSEWHERE),
        state(Status.PREPARE_COMMIT, 5, HERE),
        None,
    ],
)
def test_what_has_ended_or_is_the_next_transaction_has_a_marker(tmp_path: Path, value: TransactionValue | None) -> None:
    before = state(Status.ONGOING, 3, HERE)
    assert taken(tmp_path, before, value).ended(HERE, {PRODUCER: 3}) == {PRODUCER}


def test_each_producer_is_looked_at(tmp_path: Path) -> None:
    found = taken(tmp_path, state(Status.ONGOING, 3, HERE))
    assert found.ended(HERE, {PRODUCER: 3, 8: 0}) == {8}
