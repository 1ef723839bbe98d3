"""What clients were promised and what they saw, and whether that agrees: the checker over the history of operations.

Owns the invariants that clients can see. Offsets are given once; what was acknowledged or seen never changes; the high
watermark that a reader saw never goes back; what a transaction wrote is seen whole or not at all, and nothing of an
aborted one. Must not know brokers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

TopicPartition = tuple[str, int]


class Violated(Exception):
    """An invariant does not hold."""


class Outcome(StrEnum):
    """Of a transaction, as its client knows it."""

    OPEN = "open"
    ENDING = "ending"
    """Its commit was asked for, and the answer is not known."""
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    values: dict[TopicPartition, list[bytes]]
    outcome: Outcome = Outcome.OPEN


@dataclass(slots=True)
class _Partition:
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """What was promised to be there for good, by offset."""
    seen: dict[int, bytes] = field(default_factory=dict)
    """What a reader saw, acknowledged or not."""
    deleted_below: int = 0
    """What need not be there any more."""

    @property
    def acknowledged_end(self) -> int:
        return max(self.acknowledged, default=-1) + 1


class Judge:
    """Of one cluster."""

    def __init__(self, on_violated: Callable[[str], None], *, has_one_leader: bool = True) -> None:
        """``has_one_leader`` says that leaders do not change.

        A new leader may not know yet how far the one before had committed. ListOffsets says so (R38); Fetch does not.
        """
        self._on_violated = on_violated
        self._has_one_leader = has_one_leader
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._transactions: list[Transaction] = []
        self._writer: dict[bytes, Transaction] = {}
        self._once: set[bytes] = set()
        self._high_watermarks: dict[tuple[str, TopicPartition], int] = {}
        self.power_cuts = 0

    def violated(self, what: str) -> Violated:
        self._on_violated(what)
        return Violated(what)

    def _of(self, key: TopicPartition) -> _Partition:
        return self._partitions.setdefault(key, _Partition())

    # Writing

    def acknowledged(self, key: TopicPartition, base_offset: int, values: Sequence[bytes]) -> None:
        of = self._of(key)
        for offset, value in enumerate(values, base_offset):
            if of.acknowledged.setdefault(offset, value) != value:
                raise self.violated(f"offset {offset} of {key} was given to {of.acknowledged[offset]!r} and {value!r}")
            self._check(of.seen, key, offset, value)

    def acknowledged_end(self, key: TopicPartition) -> int:
        """No leader's log may end before this."""
        return self._of(key).acknowledged_end

    def deletes(self, key: TopicPartition, offset: int) -> None:
        """A client asks to delete what is below an offset: from now on that may be gone."""
        of = self._of(key)
        of.deleted_below = max(of.deleted_below, offset)

    def written_once(self, values: Iterable[bytes]) -> None:
        """By an idempotent producer: however often it was sent, it is in the log once at most."""
        self._once.update(values)

    def lost_power(self) -> None:
        """On a single node only what was acknowledged, and what lies below, was on the disk."""
        self.power_cuts += 1
        for of in self._partitions.values():
            of.seen = {offset: value for offset, value in of.seen.items() if offset < of.acknowledged_end}
        self._high_watermarks = {
            (reader, key): min(offset, self._of(key).acknowledged_end)
            for (reader, key), offset in self._high_watermarks.items()
        }

    # Transactions

    def begin(self, values: dict[TopicPartition, list[bytes]]) -> Transaction:
        transaction = Transaction(values)
        self._transactions.append(transaction)
        self._writer |= {value: transaction for some in values.values() for value in some}
        return transaction

    # Reading

    def saw(self, key: TopicPartition, offset: int, value: bytes) -> None:
        """Below the high watermark."""
        of = self._of(key)
        self._check(of.acknowledged, key, offset, value)
        self._check(of.seen, key, offset, value)
        of.seen[offset] = value

    def _check(self, known: dict[int, bytes], key: TopicPartition, offset: int, value: bytes) -> None:
        if known.get(offset, value) != value:
            raise self.violated(f"offset {offset} of {key} was {known[offset]!r} and is {value!r}")

    def saw_committed(self, key: TopicPartition, value: bytes) -> None:
        """As a reader of committed records."""
        transaction = self._writer.get(value)
        if transaction is not None and transaction.outcome in (Outcome.OPEN, Outcome.ABORTED):
            raise self.violated(f"{value!r} in {key} was seen, its transaction is {transaction.outcome}")

    def saw_high_watermark(self, reader: str, key: TopicPartition, offset: int) -> None:
        """In the response to a Fetch."""
        if self._has_one_leader:
            self.saw_latest(reader, key, offset)
        else:
            self._high_watermarks[reader, key] = max(offset, self._high_watermarks.get((reader, key), 0))

    def saw_latest(self, reader: str, key: TopicPartition, offset: int) -> None:
        """As ListOffsets tells the end of a partition."""
        before = self._high_watermarks.get((reader, key), 0)
        if offset < before:
            raise self.violated(f"{reader} saw the high watermark of {key} at {before}, and then at {offset}")
        self._high_watermarks[reader, key] = offset

    # In the end

    def check_log(self, key: TopicPartition, records: dict[int, bytes]) -> None:
        """All of a partition, read after everything has healed."""
        of = self._of(key)
        for known, what in ((of.acknowledged, "was acknowledged"), (of.seen, "was seen")):
            for offset, value in known.items():
                if offset >= of.deleted_below and records.get(offset) != value:
                    raise self.violated(f"{value!r} at {offset} of {key} {what}; there is {records.get(offset)!r}")
        values = [value for value in records.values() if value in self._once]
        if len(values) != len(set(values)):
            twice = next(value for value in values if values.count(value) > 1)
            raise self.violated(f"{twice!r} of an idempotent producer is in {key} twice")

    def check_transactions(self, committed: dict[TopicPartition, list[bytes]]) -> None:
        """``committed`` is all that readers of committed records see."""
        for transaction in self._transactions:
            written = [(key, value) for key, some in transaction.values.items() for value in some]
            seen = [value for key, value in written if value in committed[key]]
            if seen and len(seen) < len(written):
                raise self.violated(f"only {seen} of {written} were committed")
            if seen and transaction.outcome in (Outcome.OPEN, Outcome.ABORTED):
                raise self.violated(f"{seen} were seen, their transaction is {transaction.outcome}")
            if written and not seen and transaction.outcome is Outcome.COMMITTED:
                raise self.violated(f"{written} were committed, and are not seen")
