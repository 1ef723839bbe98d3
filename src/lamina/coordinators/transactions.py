"""The transactional ids of one partition of ``__transaction_state``: the transaction coordinator's state machine.

Durable state changes only by :meth:`TransactionShard.replay`. Soft is what a crash may forget: when open transactions
run out by the monotonic clock, and whose repetition of InitProducerId is welcome. A change is never pending between
two requests, since it is replayed in the turn that decided it; while markers are written the state itself says so,
and producers are told CONCURRENT_TRANSACTIONS. Must not know partitions' logs, nor where producer ids come from.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from lamina.coordinators.decision import Decision, Now, Producer, SendMarkers, TimerName, Waiter
from lamina.coordinators.records.partitioning import partition_of
from lamina.coordinators.records.transaction_records import (
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from lamina.coordinators.transaction_ending import end
from lamina.coordinators.transaction_initializing import initialize
from lamina.coordinators.transaction_listing import describe, listings
from lamina.coordinators.transaction_requests import (
    BUMPING,
    CLASSIC,
    AddOffsetsRequest,
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ListRequest,
    ProducerIdNeeded,
    TransactionDescription,
    TransactionListing,
    TransactionSettings,
    Verified,
    VerifyPartitionsRequest,
    fenced,
)
from lamina.coordinators.transaction_transitions import (
    ENDING,
    IDLE,
    aborted_by_fence,
    completed,
    fence_continued,
    needs_producer_id_to_complete,
    producer_after,
    producer_of,
    with_partitions,
)
from lamina.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    TransactionAbortable,
    TransactionalIdNotFound,
)

OFFSETS_TOPIC = "__consumer_offsets"

ABORT_TIMED_OUT: TimerName = ("abort timed out transactions",)
REMOVE_EXPIRED: TimerName = ("remove expired transactional ids",)

_PARTITIONS_AT_A_TIME = 1000
_TOMBSTONE_BYTES_AT_A_TIME = 64 * 1024
"""What one decision takes in hand; the rest is left to the next turn of the loop."""

TransactionDecision = Decision[TransactionRecord]


class TransactionShard:
    def __init__(
        self,
        settings: Callable[[], TransactionSettings],
        coordinator_epoch: int = 0,
        is_known: Callable[[str, int], bool] = lambda topic, index: True,
    ) -> None:
        self._settings = settings
        self._is_known = is_known
        """Whether a partition exists: one that was deleted before the log was loaded is in no transaction any more."""
        self._coordinator_epoch = coordinator_epoch
        """The leader epoch of the partition: logs refuse markers of a coordinator that has been replaced."""
        self._values: dict[str, TransactionValue] = {}
        self.counts: Counter[Status] = Counter()
        """How many transactional ids are in each state."""
        self._predecessors: dict[str, Producer] = {}
        """Soft: who may repeat an InitProducerId, or ask for it instead of repeating an EndTxn of version 2."""
        self._began_ms: dict[str, int] = {}
        """Soft: by the monotonic clock, for every transaction that is open."""

    # Durable state

    def replay(self, record: TransactionRecord, producer: Producer | None = None) -> None:
        transactional_id, value = record.key.transactional_id, record.value
        known = self._values.get(transactional_id)
        if known is not None:
            self.counts[known.status] -= 1
        if value is not None and value.status is not Status.DEAD:
            self.counts[value.status] += 1
        if value is None or value.status is Status.DEAD:
            self._values.pop(transactional_id, None)
            self._predecessors.pop(transactional_id, None)
        else:
            self._values[transactional_id] = value
        if value is None or value.status is not Status.ONGOING:
            self._began_ms.pop(transactional_id, None)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """The coordinator's own log is never written in a transaction."""

    def loaded(self, now: Now) -> TransactionDecision:
        decision = TransactionDecision(is_atomic=False)
        for transactional_id, value in self._values.items():
            if value.status is Status.ONGOING:
                # Its timeout went on while the broker was down; a wall clock that was set back does not prolong it.
                self._began_ms[transactional_id] = now.monotonic_ms - max(now.wall_ms - value.start_timestamp_ms, 0)
                left = frozenset(partition for partition in value.partitions if self._is_known(*partition))
                if left != value.partitions:
                    decision.records.append(_record(transactional_id, value._replace(partitions=left)))
            elif value.status is Status.PREPARE_EPOCH_FENCE:
                self._prepare(decision, transactional_id, fence_continued(value, now.wall_ms))
            elif value.status in ENDING:
                decision.effects.append(self._markers(transactional_id, value))
        settings = self._settings()
        decision.set_timer(ABORT_TIMED_OUT, now.monotonic_ms + settings.abort_timed_out_interval_ms)
        decision.set_timer(REMOVE_EXPIRED, now.monotonic_ms + settings.remove_expired_interval_ms)
        return decision

    # Producers

    def init_producer_id(self, request: InitRequest, waiter: Waiter, now: Now) -> TransactionDecision:
        _require_id(request.transactional_id)
        settings = self._settings()
        if not 0 < request.timeout_ms <= settings.max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"a transaction timeout of {request.timeout_ms} ms is not between 1 and "
                f"transaction.max.timeout.ms={settings.max_timeout_ms}"
            )
        transactional_id = request.transactional_id
        value, predecessor = self._values.get(transactional_id), self._predecessors.get(transactional_id)
        new, response, predecessor = initialize(value, predecessor, request, settings.transaction_version, now.wall_ms)
        decision = TransactionDecision(is_refusable=True)
        self._set_predecessor(decision, transactional_id, predecessor)
        if new.status in ENDING:
            self._prepare(decision, transactional_id, new)
        else:
            decision.records.append(_record(transactional_id, new))
        decision.reply(waiter, response)
        return decision

    def add_partitions(self, request: AddPartitionsRequest, waiter: Waiter, now: Now) -> TransactionDecision:
        value = self._require(request.transactional_id)
        # First of all: the client may have been told its next producer id, which takes over only when this has ended.
        if value.status in ENDING:
            raise ConcurrentTransactions(f"the transaction of {request.transactional_id!r} is still being ended")
        _check_producer(request.transactional_id, value, request.producer, knows_fenced=request.knows_fenced)
        decision = TransactionDecision(is_refusable=True)
        if value.status is not Status.ONGOING or not request.partitions <= value.partitions:
            if value.status is not Status.ONGOING:
                began = {request.transactional_id: now.monotonic_ms}
                decision.soft_changes.append(lambda: self._began_ms.update(began))
            new = with_partitions(value, request.partitions, request.client_version, now.wall_ms)
            decision.records.append(_record(request.transactional_id, new))
        decision.reply(waiter, None)
        return decision

    def add_offsets(self, request: AddOffsetsRequest, waiter: Waiter, now: Now) -> TransactionDecision:
        partition = (OFFSETS_TOPIC, partition_of(request.group_id, request.offsets_partition_count))
        transactional_id, producer = request.transactional_id, request.producer
        added = AddPartitionsRequest(transactional_id, producer, frozenset({partition}), CLASSIC, request.knows_fenced)
        return self.add_partitions(added, waiter, now)

    def verify_partitions(self, request: VerifyPartitionsRequest) -> Verified:
        """Whether each partition is in the transaction that is open. Changes nothing."""
        value = self._require(request.transactional_id)
        _check_producer(request.transactional_id, value, request.producer, knows_fenced=True)
        if value.status in ENDING:
            raise ConcurrentTransactions(f"the transaction of {request.transactional_id!r} is still being ended")
        return {
            (topic, index): None
            if (topic, index) in value.partitions
            else TransactionAbortable(f"{topic}-{index} is not in the transaction of {request.transactional_id!r}")
            for topic, index in request.partitions
        }

    def end_txn(self, request: EndRequest, waiter: Waiter, now: Now) -> TransactionDecision:
        value = self._require(request.transactional_id)
        new, response = end(value, request, now.wall_ms)
        decision = TransactionDecision(is_refusable=True)
        if new is not None:
            if request.client_version >= BUMPING:
                self._set_predecessor(decision, request.transactional_id, request.producer)
            self._prepare(decision, request.transactional_id, new)
        decision.reply(waiter, response)
        return decision

    def markers_written(
        self, transactional_id: str, producer: Producer, now: Now, fresh_producer_id: int | None = None
    ) -> TransactionDecision:
        """A ``SendMarkers`` was carried out. What came twice, or too late, changes nothing."""
        decision = TransactionDecision(is_refusable=True)
        value = self._values.get(transactional_id)
        if value is None or value.status not in ENDING or producer_of(value) != producer:
            return decision
        if not needs_producer_id_to_complete(value):
            fresh_producer_id = None
        elif fresh_producer_id is None:
            raise ProducerIdNeeded(f"producer {value.producer_id} has no epochs left")
        after = producer_after(value, fresh_producer_id)
        decision.records.append(_record(transactional_id, completed(value, after, now.wall_ms)))
        return decision

    def topics_deleted(self, topics: frozenset[str]) -> TransactionDecision:
        """A transaction is no longer in partitions that are gone: those of a new topic by that name are others."""
        decision = TransactionDecision(is_atomic=False, is_refusable=True)
        for transactional_id, value in self._values.items():
            left = frozenset(partition for partition in value.partitions if partition[0] not in topics)
            if left != value.partitions:
                decision.records.append(_record(transactional_id, value._replace(partitions=left)))
        return decision

    # Time

    def on_timer(self, name: TimerName, now: Now) -> TransactionDecision:
        settings = self._settings()
        if name == ABORT_TIMED_OUT:
            decision, is_done = self._abort_timed_out(now, settings)
            interval_ms = settings.abort_timed_out_interval_ms
        else:
            decision, is_done = self._remove_expired(now, settings)
            interval_ms = settings.remove_expired_interval_ms
        decision.set_timer(name, now.monotonic_ms + (interval_ms if is_done else 0))
        return decision

    def _abort_timed_out(self, now: Now, settings: TransactionSettings) -> tuple[TransactionDecision, bool]:
        decision, budget = TransactionDecision(is_atomic=False, is_refusable=True), _PARTITIONS_AT_A_TIME
        for transactional_id, began_ms in self._began_ms.items():
            value = self._values[transactional_id]
            if began_ms + value.timeout_ms >= now.monotonic_ms:
                continue
            if budget <= 0:
                return decision, False
            budget -= 1 + len(value.partitions)
            is_recoverable = settings.transaction_version >= BUMPING
            self._set_predecessor(decision, transactional_id, producer_of(value) if is_recoverable else None)
            aborted = aborted_by_fence(value, settings.transaction_version, now.wall_ms)
            self._prepare(decision, transactional_id, aborted, has_timed_out=True)
        return decision, True

    def _remove_expired(self, now: Now, settings: TransactionSettings) -> tuple[TransactionDecision, bool]:
        decision, budget = TransactionDecision(is_atomic=False, is_refusable=True), _TOMBSTONE_BYTES_AT_A_TIME
        oldest_ms = now.wall_ms - settings.id_expiration_ms
        for transactional_id, value in self._values.items():
            if value.status not in IDLE or value.update_timestamp_ms > oldest_ms:
                continue
            if budget <= 0:
                return decision, False
            budget -= len(transactional_id.encode())
            decision.records.append(_record(transactional_id, None))
        return decision, True

    # Admins

    def describe(self, transactional_id: str) -> TransactionDescription:
        _require_id(transactional_id)
        value = self._values.get(transactional_id)
        if value is None:
            raise TransactionalIdNotFound(f"there is no transactional id {transactional_id!r}")
        return describe(transactional_id, value)

    def listings(self, request: ListRequest, now: Now) -> Iterator[TransactionListing | None]:
        """Every id in order; ``None`` for one that is not wanted."""
        return listings(self._values, request, now.wall_ms)

    # Deciding

    def _require(self, transactional_id: str) -> TransactionValue:
        _require_id(transactional_id)
        value = self._values.get(transactional_id)
        if value is None:
            raise InvalidProducerIdMapping(f"{transactional_id!r} has no producer id; it must be initialized first")
        return value

    def _prepare(
        self,
        decision: TransactionDecision,
        transactional_id: str,
        value: TransactionValue,
        *,
        has_timed_out: bool = False,
    ) -> None:
        decision.records.append(_record(transactional_id, value))
        decision.effects.append(self._markers(transactional_id, value)._replace(has_timed_out=has_timed_out))

    def _markers(self, transactional_id: str, value: TransactionValue) -> SendMarkers:
        return SendMarkers(
            transactional_id,
            producer_of(value),
            self._coordinator_epoch,
            value.status is Status.PREPARE_COMMIT,
            value.partitions,
            value.client_transaction_version,
            needs_producer_id_to_complete(value),
        )

    def _set_predecessor(
        self, decision: TransactionDecision, transactional_id: str, predecessor: Producer | None
    ) -> None:
        def change() -> None:
            if predecessor is None:
                self._predecessors.pop(transactional_id, None)
            else:
                self._predecessors[transactional_id] = predecessor

        decision.soft_changes.append(change)


def _record(transactional_id: str, value: TransactionValue | None) -> TransactionRecord:
    return TransactionRecord(TransactionKey(transactional_id), value)


def _require_id(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequest("a transactional id must not be empty")


def _check_producer(transactional_id: str, value: TransactionValue, producer: Producer, *, knows_fenced: bool) -> None:
    if producer.id != value.producer_id:
        raise InvalidProducerIdMapping(f"{transactional_id!r} has producer id {value.producer_id}, not {producer.id}")
    if producer.epoch != value.producer_epoch:
        reason = f"{transactional_id!r} is at epoch {value.producer_epoch}, not {producer.epoch}"
        raise fenced(reason, is_known=knows_fenced)
