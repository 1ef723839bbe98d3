"""One producer, as one log knows it: its epoch, its last batches, and the transaction that it has open.

Owns what is the next batch and what is one that came before. Must not know other producers, nor which batches may be
appended: ``producer_states`` decides.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.records.batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_SEQUENCE, BatchHeader

REMEMBERED_BATCHES = 5
NO_COORDINATOR_EPOCH = -1


class BatchPlace(NamedTuple):
    """A batch that a producer wrote, as duplicate detection needs it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class Producer:
    """One producer id: its epoch, its last batches, and the transaction it has open."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = -1
    current_txn_first_offset: int | None = None
    """First offset of its open transaction."""
    batches: deque[BatchPlace] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def continues_with(self, header: BatchHeader) -> bool:
        """Whether this is simply the next batch, as nearly all are."""
        return (
            header.producer_epoch == self.epoch
            and bool(self.batches)
            and header.base_sequence == (self.batches[-1].last_sequence + 1) & MAX_SEQUENCE
            and (self.current_txn_first_offset is not None) == header.is_transactional
        )

    def find_duplicate(self, header: BatchHeader) -> BatchPlace | None:
        if header.producer_epoch != self.epoch:
            return None
        last_sequence = header.last_sequence
        for place in self.batches:
            if place.last_sequence == last_sequence and place.offset_delta == header.last_offset_delta:
                return place
        return None

    def move_to_epoch(self, epoch: int) -> None:
        """A new epoch starts with no batches (fact 59)."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
