"""What a log knows of its producers: sequences, epochs and open transactions.

Owns the idempotence rules of protocol.md §2.35, which transactions may begin here, and the bookkeeping behind the
last stable offset. ``check`` decides and changes nothing; the ``record_*`` calls come only after the write succeeded,
so that the state never runs ahead of the log. Must not know files: snapshots are made by ``snapshots.py``.
"""

from dataclasses import dataclass
from enum import Enum

from lamina.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from lamina.log.producer import BatchPlace, Producer
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.batch import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    add_to_sequence,
)

PRODUCER_ID_CEILING = 2**62
"""Half of all ids. No broker gets here by giving them, but a client may write any id that it likes: one near the
end would leave none above it to give."""

FIRST_WITH_EPOCH_BUMP = 2
"""The transaction version from which every transaction ends with an epoch of its own (KIP-890)."""

_new_tuple = tuple.__new__


class Origin(Enum):
    """Who wrote a batch that this log is to give its place. What a leader placed is not checked again."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    """This broker itself, on behalf of a producer: epochs count, sequences say nothing."""


@dataclass(slots=True, eq=False)
class VerificationGuard:
    """A producer that wants to begin a transaction here (KIP-890); an append has to show this very object.

    The first transactional batch of a transaction in a partition is appended only with the very object that was made
    before the coordinator was asked. A marker, or the first batch itself, takes it away: an answer that the coordinator
    gave before then is good for nothing, even if another transaction of the same producer has begun meanwhile.
    """

    epoch: int
    lowest_sequence: int
    """What it may begin with. A later batch must wait until an earlier one, whose verification failed, comes again."""
    begins_at_zero: bool
    """Whether its producer raises its epoch with each transaction, so that without any state it begins at 0."""
    began_ms: int

    def take_in(self, epoch: int, sequence: int) -> None:
        """Another batch of the producer asks to be verified."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class ProducerStates:
    """The producers of one partition log, up to its end."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.highest_id = -1
        """The highest producer id below the ceiling that the log ever spoke of, forgotten ones too."""
        self.invented_id: int | None = None
        """An id from the ceiling on that the log spoke of: no broker gave it out, so it counts for this log only."""
        self._ongoing_txns: dict[int, int] = {}
        """Producer id by first offset of its open transaction, in offset order."""
        self._unreplicated_txns: dict[int, int] = {}
        """Marker offset by first offset of transactions that ended at or above the high watermark."""
        self._verifications: dict[int, VerificationGuard] = {}
        """Producers whose next transaction here has not begun yet, by id."""
        self.verifies_transactions = False
        """Whether a transaction may begin here only with a verification; a broker that leads the log says so."""

    # Deciding

    def check(
        self, header: BatchHeader, origin: Origin = Origin.CLIENT, verification: VerificationGuard | None = None
    ) -> BatchPlace | None:
        """Whether a data batch may be appended. Returns the place of the batch it duplicates, if any."""
        producer = self.producers.get(header.producer_id)
        if producer is not None:
            if producer.continues_with(header):
                return None
            duplicate = producer.find_duplicate(header) if origin is Origin.CLIENT else None
            if duplicate is not None:
                return duplicate
        if header.is_transactional:
            self._check_verified(header, verification)
        if producer is not None:
            _check_epoch(producer, header.producer_epoch)
        if origin is Origin.CLIENT:
            self._check_sequence(producer, header)
        if producer is not None and producer.current_txn_first_offset is not None and not header.is_transactional:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has a transaction open and sent a batch that is not part of it"
            )
        return None

    def _check_verified(self, header: BatchHeader, verification: VerificationGuard | None) -> None:
        if not self.verifies_transactions or self.has_open(header.producer_id, header.producer_epoch):
            return
        if verification is None or self._verifications.get(header.producer_id) is not verification:
            raise InvalidTransactionState(
                f"producer {header.producer_id} epoch {header.producer_epoch} sent a batch of a transaction that has "
                "ended, or that this partition is no part of"
            )

    def _check_sequence(self, producer: Producer | None, header: BatchHeader) -> None:
        sequence = header.base_sequence
        verification = self._verifications.get(header.producer_id)
        expected = sequence
        if verification is not None:
            if verification.begins_at_zero and (producer is None or not producer.batches):
                expected = 0
            elif sequence > verification.lowest_sequence:
                expected = verification.lowest_sequence
        if sequence == expected and producer is not None:
            expected = _next_sequence(producer, header)
        if sequence != expected:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} epoch {header.producer_epoch} sent sequence {sequence}, "
                f"{expected} was expected"
            )

    def check_marker(self, header: BatchHeader, coordinator_epoch: int, transaction_version: int = 0) -> None:
        """Whether a transaction marker may be appended.

        From transaction version 2 on each transaction has an epoch of its own, and its marker the one above: a marker
        with an epoch that the log has seen is a late one, which must not end a later transaction. The same marker once
        more, with nothing open, does no harm.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return
        _check_epoch(producer, header.producer_epoch)
        if (
            transaction_version >= FIRST_WITH_EPOCH_BUMP
            and header.producer_epoch == producer.epoch
            and producer.current_txn_first_offset is not None
        ):
            raise InvalidProducerEpoch(
                f"a marker for producer {producer.producer_id} has epoch {header.producer_epoch}, in which its open "
                "transaction writes: it is the marker of an earlier one"
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a marker for producer {header.producer_id} comes from coordinator epoch {coordinator_epoch}, "
                f"the log has seen {producer.coordinator_epoch}"
            )

    # Verifying that a transaction may begin here

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether a batch of this producer in this epoch belongs to a transaction that is open here."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.current_txn_first_offset is not None and producer.epoch == epoch

    def has_any_open(self, producer_id: int) -> bool:
        """Whether the producer has a transaction open here, in whichever epoch."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.current_txn_first_offset is not None

    def has_ended(self, producer_id: int, epoch: int) -> bool:
        """Whether the log has seen this epoch of the producer and no transaction is open."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.current_txn_first_offset is None and producer.epoch == epoch

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, begins_at_zero: bool
    ) -> VerificationGuard | None:
        """What to append a batch with, once the coordinator has said that it is part of a transaction.

        ``None`` where the coordinator need not be asked: the transaction is open here.
        """
        if self.has_open(producer_id, epoch):
            return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = VerificationGuard(epoch, sequence, begins_at_zero, now_ms)
            self._verifications[producer_id] = verification
        else:
            verification.take_in(epoch, sequence)
        return verification

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
        if attributes & TRANSACTIONAL_BIT and producer.current_txn_first_offset is None:
            producer.current_txn_first_offset = base_offset
            self._ongoing_txns[base_offset] = producer_id
        if self._verifications and attributes & TRANSACTIONAL_BIT:
            self._verifications.pop(producer_id, None)

    def record_marker(
        self, header: BatchHeader, offset: int, coordinator_epoch: int, *, is_abort: bool
    ) -> AbortedTransaction | None:
        """Take a marker at ``offset`` into account. Returns the index entry that an abort has to leave."""
        producer = self.producers.get(header.producer_id) or self._new(header.producer_id)
        producer.move_to_epoch(header.producer_epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        self._verifications.pop(header.producer_id, None)
        first_offset, producer.current_txn_first_offset = producer.current_txn_first_offset, None
        if first_offset is None:
            return None
        self._ongoing_txns.pop(first_offset, None)
        self._unreplicated_txns[first_offset] = offset
        if not is_abort:
            return None
        return AbortedTransaction(header.producer_id, first_offset, offset, next(iter(self._ongoing_txns), offset + 1))

    def restore(self, producer: Producer) -> None:
        """Take over a producer from a snapshot."""
        self.note_id(producer.producer_id)
        self.producers[producer.producer_id] = producer
        if producer.current_txn_first_offset is not None:
            in_order = not self._ongoing_txns or next(reversed(self._ongoing_txns)) < producer.current_txn_first_offset
            self._ongoing_txns[producer.current_txn_first_offset] = producer.producer_id
            if not in_order:
                self._ongoing_txns = dict(sorted(self._ongoing_txns.items()))

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
        first_open = next(iter(self._ongoing_txns), None)
        if not self._unreplicated_txns:
            return first_open
        first_ended = min(self._unreplicated_txns)
        return first_ended if first_open is None else min(first_open, first_ended)

    def high_watermark_moved(self, high_watermark: int) -> bool:
        """Forget ended transactions whose marker every reader may see. Returns whether there were any."""
        before = len(self._unreplicated_txns)
        if before:
            self._unreplicated_txns = {
                first: last for first, last in self._unreplicated_txns.items() if last >= high_watermark
            }
        return len(self._unreplicated_txns) < before

    # Forgetting

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop producers that were silent for too long and have no transaction open (fact 57), and what they began."""
        for producer_id in [
            producer.producer_id
            for producer in self.producers.values()
            if producer.current_txn_first_offset is None and now_ms - producer.last_timestamp >= expiration_ms
        ]:
            del self.producers[producer_id]
        for producer_id in [
            producer_id
            for producer_id, verification in self._verifications.items()
            if now_ms - verification.began_ms >= expiration_ms
        ]:
            del self._verifications[producer_id]

    def take_over(self, other: "ProducerStates", end_offset: int) -> None:
        """Be what ``other`` says of a log that was cut to ``end_offset``.

        Ids that the log ever spoke of stay known, and so do transactions that ended between high watermark and cut:
        a snapshot does not tell of them.
        """
        ended = {first: marker for first, marker in self._unreplicated_txns.items() if marker < end_offset}
        self.clear()
        self.producers.update(other.producers)
        self._ongoing_txns.update(other._ongoing_txns)
        self._unreplicated_txns.update(ended | other._unreplicated_txns)

    def clear(self) -> None:
        self.producers.clear()
        self._ongoing_txns.clear()
        self._unreplicated_txns.clear()
        self._verifications.clear()


def _check_epoch(producer: Producer, epoch: int) -> None:
    if epoch < producer.epoch:
        raise InvalidProducerEpoch(
            f"producer {producer.producer_id} writes with epoch {epoch}, the log has seen {producer.epoch}"
        )


def _next_sequence(producer: Producer, header: BatchHeader) -> int:
    if header.producer_epoch != producer.epoch:
        return 0 if producer.epoch != NO_PRODUCER_EPOCH else header.base_sequence
    return add_to_sequence(producer.last_sequence, 1) if producer.batches else 0
