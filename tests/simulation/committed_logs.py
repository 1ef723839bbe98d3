"""What was committed in each partition, byte for byte, as replicas passed their high watermarks over it.

Owns the one history that all replicas must have: the first that commits a batch writes it, whoever commits it later
must have the same, and so must the leader of every later epoch. Must not know roles.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from lamina.log.partition_log import PartitionLog
from lamina.records.batch import walk
from tests.simulation.judge import Judge

_PIECE_BYTES = 1 << 16

PartitionId = tuple[UUID, int]


class _Batch(NamedTuple):
    data: bytes
    end: int
    epoch: int
    """In which leader epoch it was committed."""


class CommittedLogs:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._histories: dict[PartitionId, dict[int, _Batch]] = {}
        """Of each partition the batches, by base offset."""
        self.doubtful: frozenset[str] = frozenset()
        """Topics of which committed records may be lost."""

    def forget(self) -> None:
        """What was not synced anywhere is gone."""
        self._histories.clear()

    def commit(self, key: PartitionId, log: PartitionLog, start: int, end: int, epoch: int, who: str) -> None:
        """A replica's high watermark went from one offset to another, in a leader epoch."""
        if log.topic in self.doubtful:
            return
        history = self._histories.setdefault(key, {})
        for base_offset, batch_end, data in _batches(log, max(start, log.log_start_offset), end):
            known = history.setdefault(base_offset, _Batch(data, batch_end, epoch))
            if known.data != data:
                raise self._judge.violated(f"{log.name} at {base_offset} on {who} is not what was committed there")

    def check(self, key: PartitionId, log: PartitionLog, before_epoch: int, who: str) -> None:
        """A replica must have all that was committed before a leader epoch."""
        wanted = {
            base_offset: batch
            for base_offset, batch in self._histories.get(key, {}).items()
            if batch.epoch < before_epoch and base_offset >= log.log_start_offset
        }
        end = max((batch.end for batch in wanted.values()), default=0)
        if log.log_end_offset < end:
            raise self._judge.violated(f"{who} has {log.name} up to {log.log_end_offset}, and {end} were committed")
        found = {base_offset: data for base_offset, _, data in _batches(log, log.log_start_offset, end)}
        for base_offset, batch in wanted.items():
            if found.get(base_offset) != batch.data:
                raise self._judge.violated(f"{log.name} at {base_offset} on {who} is not what was committed there")

    def end(self, key: PartitionId, before_epoch: int) -> int:
        """Of all that was committed before a leader epoch."""
        batches = self._histories.get(key, {}).values()
        return max((batch.end for batch in batches if batch.epoch < before_epoch), default=0)


def check_same(judge: Judge, leader: PartitionLog, followers: Iterable[PartitionLog]) -> None:
    """Whatever was lost: all have the same from where all begin, once all are in sync."""
    for log in followers:
        start, end = max(log.log_start_offset, leader.log_start_offset), leader.log_end_offset
        if log.log_end_offset != end or _batches(log, start, end) != _batches(leader, start, end):
            raise judge.violated(f"two replicas of {log.name} differ between {start} and {end}")


def _batches(log: PartitionLog, start: int, end: int) -> list[tuple[int, int, bytes]]:
    """Base offset, end and bytes of each."""
    found: list[tuple[int, int, bytes]] = []
    position = start
    while position < end:
        lease = log.read(position, _PIECE_BYTES, end)
        if lease is None:
            break
        with lease:
            data = lease.read()
        for at, header in walk(data):
            position = header.last_offset + 1
            found.append((header.base_offset, position, data[at : at + header.size_bytes]))
    return found
