"""What a log knows of its producers: sequences, epochs and open transactions.

Owns the idempotence rules of protocol.md §2.35 and the bookkeeping behind the last stable offset. ``check``
decides and changes nothing; the ``record_*`` calls come only after the write succeeded, so that the state
never runs ahead of the log. Must not know files: snapshots are made by ``snapshots.py``.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from lamina.log.aborted import AbortedTransaction
from lamina.records.batch import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    add_to_sequence,
)

REMEMBERED_BATCHES = 5
NO_COORDINATOR_EPOCH = -1
PRODUCER_ID_CEILING = 2**62
"""Half of all ids. No broker gets here by giving them, but a client may write any id that it likes: one near the
end would leave none above it to give."""

_new_tuple = tuple.__new__


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
    open_since: int | None = None
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
            and (self.open_since is None or header.is_transactional)
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


class ProducerStates:
    """The producers of one partition log, up to its end."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.highest_id = -1
        """The highest producer id below the ceiling that the log ever spoke of, forgotten ones too."""
        self.invented_id: int | None = None
        """An id from the ceiling on that the log spoke of: nobody was given it, so it is good for this log only."""
        self._open: dict[int, int] = {}
        """Producer id by first offset of its open transaction, in offset order."""
        self._ended: dict[int, int] = {}
        """Marker offset by first offset of transactions that ended at or above the high watermark."""

    # Deciding

    def check(self, header: BatchHeader) -> BatchPlace | None:
        """Whether a client's data batch may be appended. Returns the place of the batch it duplicates, if any."""
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.continues_with(header):
            return None
        if header.base_sequence == NO_SEQUENCE:  # a coordinator's: no client may send it (protocol.md §2.35)
            _check_epoch(producer, header.producer_epoch)
            return None
        duplicate = producer.find_duplicate(header)
        if duplicate is not None:
            return duplicate
        _check_epoch(producer, header.producer_epoch)
        _check_sequence(producer, header)
        if producer.open_since is not None and not header.is_transactional:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has a transaction open and sent a batch that is not part of it"
            )
        return None

    def check_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Whether a transaction marker may be appended."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return
        _check_epoch(producer, header.producer_epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a marker for producer {header.producer_id} comes from coordinator epoch {coordinator_epoch}, "
                f"the log has seen {producer.coordinator_epoch}"
            )

    # Recording what is in the log

    def record_batch(self, header: BatchHeader, base_offset: int) -> None:
        """Take a data batch at ``base_offset`` into account."""
        _, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, sequence, _ = header
        producer = self.producers.get(producer_id) or self._new(producer_id)
        if epoch != producer.epoch:
            producer.move_to_epoch(epoch)
        last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else (sequence + delta) & MAX_SEQUENCE
        producer.batches.append(_new_tuple(BatchPlace, (last_sequence, base_offset + delta, delta, timestamp)))
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT and producer.open_since is None:
            producer.open_since = base_offset
            self._open[base_offset] = producer_id

    def record_marker(
        self, header: BatchHeader, offset: int, coordinator_epoch: int, *, is_abort: bool
    ) -> AbortedTransaction | None:
        """Take a marker at ``offset`` into account. Returns the index entry that an abort has to leave."""
        producer = self.producers.get(header.producer_id) or self._new(header.producer_id)
        producer.move_to_epoch(header.producer_epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset, producer.open_since = producer.open_since, None
        if first_offset is None:
            return None
        self._open.pop(first_offset, None)
        self._ended[first_offset] = offset
        if not is_abort:
            return None
        return AbortedTransaction(header.producer_id, first_offset, offset, next(iter(self._open), offset + 1))

    def restore(self, producer: Producer) -> None:
        """Take over a producer from a snapshot."""
        self.note_id(producer.producer_id)
        self.producers[producer.producer_id] = producer
        if producer.open_since is not None:
            in_order = not self._open or next(reversed(self._open)) < producer.open_since
            self._open[producer.open_since] = producer.producer_id
            if not in_order:
                self._open = dict(sorted(self._open.items()))

    def _new(self, producer_id: int) -> Producer:
        producer = self.producers[producer_id] = Producer(producer_id)
        self.note_id(producer_id)
        return producer

    def note_id(self, producer_id: int) -> None:
        """Remember that the log spoke of this id, so that it is not given to anybody else."""
        if producer_id >= PRODUCER_ID_CEILING:
            self.invented_id = producer_id
        elif producer_id > self.highest_id:
            self.highest_id = producer_id

    # Looking

    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is open, or that ended above the high watermark."""
        first_open = next(iter(self._open), None)
        if not self._ended:
            return first_open
        first_ended = min(self._ended)
        return first_ended if first_open is None else min(first_open, first_ended)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Forget ended transactions whose marker every reader may see."""
        if self._ended:
            self._ended = {first: last for first, last in self._ended.items() if last >= high_watermark}

    # Forgetting

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop producers that were silent for too long and have no transaction open (fact 57)."""
        for producer_id in [
            producer.producer_id
            for producer in self.producers.values()
            if producer.open_since is None and now_ms - producer.last_timestamp >= expiration_ms
        ]:
            del self.producers[producer_id]

    def clear(self) -> None:
        self.producers.clear()
        self._open.clear()
        self._ended.clear()


def _check_epoch(producer: Producer, epoch: int) -> None:
    if epoch < producer.epoch:
        raise InvalidProducerEpoch(
            f"producer {producer.producer_id} writes with epoch {epoch}, the log has seen {producer.epoch}"
        )


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    sequence = header.base_sequence
    if header.producer_epoch != producer.epoch:
        expected = 0 if producer.epoch != NO_PRODUCER_EPOCH else sequence
    elif producer.batches:
        expected = add_to_sequence(producer.last_sequence, 1)
    else:
        expected = 0
    if sequence != expected:
        raise OutOfOrderSequence(
            f"producer {producer.producer_id} epoch {header.producer_epoch} sent sequence {sequence}, "
            f"{expected} was expected"
        )
