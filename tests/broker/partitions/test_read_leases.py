"""Leases of files: who gets one, what it holds, and how each ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from lamina.broker.partitions.read_leases import LEASE_MS, Ended
from lamina.errors import ErrorCode
from lamina.log.files import Disk
from lamina.log.flushing import flush
from lamina.log.names import READING_FOLDER
from lamina.log.steps import run_steps
from lamina.records.batch import walk
from tests.broker.in_process import InProcessBroker
from tests.broker.transacting import Transacting

LEND, KEEP = 10_001, 10_002
READ_COMMITTED = 1
HERE = "this-boot"


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    monkeypatch.setattr(Disk, "boot_id", lambda _: HERE)
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": str(tmp_path / "logs")})
    broker.create("t")
    yield broker
    broker.close()


def lend(broker: InProcessBroker, start: int = 0, end: int = 1000, **facts: Any) -> Any:
    asked = {"topic": "t", "start_offset": start, "end_offset": end, "boot_id": HERE, "current_leader_epoch": -1}
    return broker.ask(LEND, 0, **(asked | facts))


def keep(broker: InProcessBroker, lease_id: UUID | None, *, is_over: bool = False) -> int:
    return int(broker.ask(KEEP, 0, lease_id=lease_id, is_over=is_over).error_code)


def offsets(lent: Any) -> list[int]:
    """Of the records in the ranges that are lent, read through their links."""
    assert lent.error_code == 0, lent.error_message
    found = []
    for one in lent.segments:
        path = Path(lent.folder) / f"{one.base_offset:020d}.log"
        assert path.stat().st_ino == one.inode
        data = path.read_bytes()[one.start_position : one.end_position]
        found += [offset for _, header in walk(data) for offset in range(header.base_offset, header.next_offset)]
    return found


def end_due(broker: InProcessBroker) -> None:
    broker.parts.loop.run_until_complete(broker.parts.read_leases.end_due())


def folders(broker: InProcessBroker) -> list[Path]:
    folder = Path(broker.parts.directories[0].path) / READING_FOLDER
    return list(folder.iterdir()) if folder.exists() else []


def roll(broker: InProcessBroker) -> None:
    log = broker.parts.partitions.get("t", 0).log
    log.roll(broker.parts.clocks.now_ms())


def test_the_leader_lends_what_is_committed_and_says_of_which_topic(broker: InProcessBroker) -> None:
    broker.produce("t", 5)
    roll(broker)
    broker.produce("t", 3)
    partition = broker.parts.partitions.get("t", 0)
    lent = lend(broker)
    assert offsets(lent) == list(range(8))
    assert (lent.node_id, lent.topic_id, lent.leader_epoch, lent.end_offset) == (1, partition.topic_id, 0, 8)
    assert lent.lease.total_seconds() * 1000 == LEASE_MS
    partition.high_watermark = 5
    assert offsets(lend(broker, 2)) == list(range(5)), "a batch is lent whole"


def test_a_reader_of_committed_records_gets_no_open_transaction_and_is_told_the_aborted_ones(
    broker: InProcessBroker,
) -> None:
    producer = Transacting(broker)
    producer.find()
    broker.settle()
    me = producer.started()
    me = producer.transact(me, [b"no"], commit=False)
    me = producer.transact(me, [b"yes"], sequence=1)
    assert producer.add(me, ("t", 0)) == [0]
    assert producer.produce(me, [b"open"], sequence=2) == 0
    lent = lend(broker, isolation_level=READ_COMMITTED)
    assert offsets(lent) == [0, 1, 2, 3]
    aborted = [(one.producer_id, one.first_offset, one.last_offset) for one in lent.aborted_transactions]
    assert aborted == [(me.id, 0, 1)]
    assert offsets(lend(broker)) == [0, 1, 2, 3, 4]


def test_a_reader_on_another_machine_is_lent_what_the_disk_has(broker: InProcessBroker) -> None:
    broker.produce("t", 5)
    for boot_id in ("", "another"):
        assert lend(broker, boot_id=boot_id).segments == ()
    flush(broker.parts.partitions.get("t", 0).log)
    broker.produce("t", 3)
    assert offsets(lend(broker, boot_id="another")) == list(range(5))
    assert offsets(lend(broker)) == list(range(8))


def test_nothing_to_lend_is_no_lease(broker: InProcessBroker) -> None:
    lent = lend(broker)
    assert (lent.error_code, lent.lease_id, lent.segments, lent.end_offset) == (0, None, (), 0)
    assert not len(broker.parts.read_leases)
    assert not folders(broker)


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"topic": "other"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": uuid4()}, ErrorCode.INCONSISTENT_TOPIC_ID),
        ({"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"start_offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
    ids=["topic", "topic id", "epoch", "offset"],
)
def test_what_a_fetch_would_be_refused_is_not_lent(
    broker: InProcessBroker, facts: dict[str, Any], error: ErrorCode
) -> None:
    broker.produce("t", 1)
    assert lend(broker, **facts).error_code == error


def test_only_a_leader_lends(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    broker.parts.partitions.get("t", 0).resign()
    assert lend(broker).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_lease_ends_when_it_is_given_back(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    lent = lend(broker)
    assert len(folders(broker)) == 1
    assert keep(broker, lent.lease_id, is_over=True) == 0
    assert not folders(broker)
    assert keep(broker, lent.lease_id, is_over=True) == ErrorCode.RESOURCE_NOT_FOUND
    assert keep(broker, None) == ErrorCode.RESOURCE_NOT_FOUND
    assert broker.parts.read_leases.ended == {Ended.GIVEN_BACK: 1}


def test_a_lease_that_nobody_renews_lapses(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    broker.clock.monotonic_ms = 1000
    renewed, silent = lend(broker), lend(broker)
    broker.clock.monotonic_ms = 1000 + LEASE_MS - 1
    assert keep(broker, renewed.lease_id) == 0
    end_due(broker)
    assert len(folders(broker)) == 2
    broker.clock.monotonic_ms = 1000 + LEASE_MS
    end_due(broker)
    assert [folder.name for folder in folders(broker)] == [renewed.lease_id.hex]
    assert keep(broker, silent.lease_id) == ErrorCode.RESOURCE_NOT_FOUND
    assert broker.parts.read_leases.ended == {Ended.LAPSED: 1}


def test_only_so_many_leases_are_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disk, "boot_id", lambda _: HERE)
    broker = InProcessBroker(tmp_path, {"lamina.read.leases.max": "2"})
    broker.create("t")
    broker.produce("t", 1)
    first = lend(broker)
    assert lend(broker).error_code == 0
    refused = lend(broker)
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
    assert "lamina.read.leases.max" in refused.error_message
    assert keep(broker, first.lease_id, is_over=True) == 0
    assert lend(broker).error_code == 0
    broker.restart(**{"lamina.read.leases.max": "0"})
    assert lend(broker).error_code == ErrorCode.POLICY_VIOLATION
    broker.close()


def test_a_disk_that_has_no_links_lends_nothing(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Disk, "link", refuse)
    broker.produce("t", 1)
    lent = lend(broker)
    assert lent.error_code == ErrorCode.POLICY_VIOLATION
    assert lent.error_message.endswith("can be lent: Operation not permitted")
    assert not folders(broker)
    assert broker.produce("t", 1) == 1, "the log is not offline"


def test_what_leases_keep_is_seen_and_revoked_when_the_disk_is_nearly_full(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    roll(broker)
    broker.produce("t", 1)
    kept, other = lend(broker, 0, 1), lend(broker, 1)
    log = broker.parts.partitions.get("t", 0).log
    run_steps(log.delete_oldest(log.segments.first, 0))
    for path in log.take_due_paths(2**62):
        log.disk.unlink(path)
    end_due(broker)
    leases = {lease.id: lease for lease in broker.parts.read_leases}
    assert leases[kept.lease_id].held_bytes > 0
    assert leases[other.lease_id].held_bytes == 0
    space = broker.parts.directories.free_space_of(("t", 0))
    space.measured(0, 0, 1)
    end_due(broker)
    assert [lease.id for lease in broker.parts.read_leases] == [other.lease_id]
    assert broker.parts.read_leases.ended == {Ended.REVOKED: 1}
    refused = lend(broker, 1)
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
    assert "nearly full" in refused.error_message


def test_a_stop_takes_all_back_and_a_start_what_a_killed_broker_had_lent(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    lend(broker)
    broker.parts.loop.run_until_complete(broker.parts.read_leases.close())
    assert not (Path(broker.parts.directories[0].path) / READING_FOLDER).exists(), "Kafka knows no such directory"
    assert lend(broker).error_code == ErrorCode.POLICY_VIOLATION
    broker.restart()
    lend(broker)
    assert len(folders(broker)) == 1
    broker.restart()
    assert not folders(broker)


def test_segments_that_are_replaced_meanwhile_are_looked_for_again(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.produce("t", 1)
    roll(broker)
    broker.produce("t", 1)
    log = broker.parts.partitions.get("t", 0).log
    link, first = Disk.link, [log.segments.first]

    def link_late(disk: Disk, old: str, new: str) -> None:
        """Retention comes between the look at the log and the links."""
        if first:
            run_steps(log.delete_oldest(first.pop(), 0))
        link(disk, old, new)

    monkeypatch.setattr(Disk, "link", link_late)
    lent = lend(broker)
    assert lent.error_code == ErrorCode.OFFSET_OUT_OF_RANGE, "offset 0 is gone"
    assert not folders(broker)
    assert offsets(lend(broker, 1)) == [1]


def test_a_topic_that_goes_meanwhile_is_not_lent(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.produce("t", 1)
    partition = broker.parts.partitions.get("t", 0)
    link = Disk.link

    def link_late(disk: Disk, old: str, new: str) -> None:
        partition.resign()
        link(disk, old, new)

    monkeypatch.setattr(Disk, "link", link_late)
    assert lend(broker).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not folders(broker)
