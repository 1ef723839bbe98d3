"""Histories in which nothing is wrong: random clients of a log that never fails, and one clock for all of them."""

from collections.abc import Sequence
from random import Random

from tests.history.events import (
    Assigned,
    EndSeen,
    History,
    Partition,
    Read,
    Send,
    SendOutcome,
    TransactionOutcome,
)

PARTITIONS: Sequence[Partition] = (("a", 0), ("a", 1), ("b", 0))
_WRITERS = ("plain", "other", "transactional")
_READERS = ("committed", "uncommitted")


class PerfectLog:
    """Records of transactions are visible to readers of committed records once their transaction is committed."""

    def __init__(self, random: Random) -> None:
        self.history = History(uncommitted_readers={"uncommitted"})
        self._random = random
        self._now_ms = 0.0
        self._numbers = 0
        self._logs: dict[Partition, list[tuple[bytes, str | None] | None]] = {one: [] for one in PARTITIONS}
        """``None`` is a marker."""
        self._positions: dict[tuple[str, Partition], int] = {}
        self._transaction: str | None = None

    def live(self, steps: int) -> History:
        acts = (self._send, self._send, self._send, self._read, self._read, self._end, self._seek, self._look_at_end)
        for _ in range(steps):
            self._random.choice(acts)()
        self._end()
        self.history.final = {
            partition: {
                offset: record[0]
                for offset, record in enumerate(log)
                if record is not None and self._is_committed(record[1])
            }
            for partition, log in self._logs.items()
        }
        return self.history

    def _tick(self) -> float:
        self._now_ms += 1
        return self._now_ms

    def _send(self) -> None:
        producer, partition = self._random.choice(_WRITERS), self._random.choice(PARTITIONS)
        value, began_ms = b"%d" % self._numbers, self._tick()
        self._numbers += 1
        fate = self._random.random()
        if producer != "transactional" and fate < 0.1:
            self.history.sends.append(
                Send(producer, partition, value, SendOutcome.FAILED, None, began_ms, self._tick())
            )
            return
        transaction = None
        if producer == "transactional":
            transaction = self._transaction = self._transaction or f"transaction {self._numbers}"
        is_told = fate < 0.8 or transaction is not None
        if is_told or fate < 0.9:
            self._logs[partition].append((value, transaction))
        outcome = SendOutcome.ACKED if is_told else SendOutcome.UNKNOWN
        offset = len(self._logs[partition]) - 1 if is_told else None
        self.history.sends.append(
            Send(producer, partition, value, outcome, offset, began_ms, self._tick(), transaction)
        )

    def _end(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        is_committed = self._random.random() < 0.6
        outcome = TransactionOutcome.COMMITTED if is_committed else TransactionOutcome.ABORTED
        self.history.transactions[transaction] = outcome
        for log in self._logs.values():
            if any(record is not None and record[1] == transaction for record in log):
                log.append(None)

    def _read(self) -> None:
        reader, partition = self._random.choice(_READERS), self._random.choice(PARTITIONS)
        log = self._logs[partition]
        key = reader, partition
        if key not in self._positions:
            self._assign(reader, partition, 0)
        end = self._stable_end(partition) if reader == "committed" else len(log)
        for offset in range(self._positions[key], min(end, self._positions[key] + self._random.randint(1, 4))):
            record = log[offset]
            self._positions[key] = offset + 1
            if record is not None and (reader == "uncommitted" or self._is_committed(record[1])):
                within = self._transaction if reader == "committed" else None
                self.history.moves.append(Read(reader, partition, offset, record[0], self._tick(), within))

    def _seek(self) -> None:
        partition = self._random.choice(PARTITIONS)
        self._assign(self._random.choice(_READERS), partition, self._random.randint(0, len(self._logs[partition])))

    def _assign(self, reader: str, partition: Partition, offset: int) -> None:
        self.history.moves.append(Assigned(reader, partition, offset))
        self._positions[reader, partition] = offset

    def _look_at_end(self) -> None:
        partition, began_ms = self._random.choice(PARTITIONS), self._tick()
        self.history.ends.append(EndSeen("looker", partition, len(self._logs[partition]), began_ms, self._tick()))

    def _stable_end(self, partition: Partition) -> int:
        """The last stable offset."""
        for offset, record in enumerate(self._logs[partition]):
            if record is not None and record[1] is not None and record[1] == self._transaction:
                return offset
        return len(self._logs[partition])

    def _is_committed(self, transaction: str | None) -> bool:
        return transaction is None or self.history.outcome_of(transaction) is TransactionOutcome.COMMITTED
