"""What clients of a cluster did and were told: the history that is checked when everything is over.

Values are unique within a topic: who sent one is known by it. Times are milliseconds on one clock. Must not know how a
history came about, nor what is wrong with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Partition = tuple[str, int]
"""A topic and the number of a partition."""


class SendOutcome(StrEnum):
    ACKED = "acked"
    FAILED = "failed"
    """The producer was told that it is not written, and never will be."""
    UNKNOWN = "unknown"
    """No answer, or one that leaves it open."""


class TransactionOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Its end was asked for, and the answer is not known; or its producer is gone."""


@dataclass(frozen=True, slots=True)
class Send:
    """The sends of a producer are in the order in which it was given them."""

    producer: str
    partition: Partition
    value: bytes
    outcome: SendOutcome
    offset: int | None = None
    began_ms: float = 0.0
    ended_ms: float = 0.0
    transaction: str | None = None
    is_lasting: bool = True
    """Acknowledged means that it stays: ``acks=all``."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """From here on a reader reads a partition from this offset; ``None`` where it does not know."""

    reader: str
    partition: Partition
    offset: int | None


@dataclass(frozen=True, slots=True)
class Read:
    reader: str
    partition: Partition
    offset: int
    value: bytes
    at_ms: float = 0.0
    transaction: str | None = None
    """In which it was consumed, where the reader is part of one."""


@dataclass(frozen=True, slots=True)
class EndSeen:
    """The end of a partition, as ListOffsets told it."""

    reader: str
    partition: Partition
    offset: int
    began_ms: float
    ended_ms: float


@dataclass(slots=True)
class History:
    sends: list[Send] = field(default_factory=list)
    moves: list[Assigned | Read] = field(default_factory=list)
    """Those of one reader are in order."""
    transactions: dict[str, TransactionOutcome] = field(default_factory=dict)
    ends: list[EndSeen] = field(default_factory=list)
    uncommitted_readers: set[str] = field(default_factory=set)
    """Those that read what no transaction has committed yet."""
    compacted: set[str] = field(default_factory=set)
    """Topics of which only the latest value of each key stays."""
    final: Mapping[Partition, Mapping[int, bytes]] = field(default_factory=dict)
    """All that readers of committed records find, after everything has healed; each partition from its start."""

    def outcome_of(self, transaction: str) -> TransactionOutcome:
        return self.transactions.get(transaction, TransactionOutcome.UNKNOWN)
