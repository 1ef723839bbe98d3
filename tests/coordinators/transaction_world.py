"""A transaction coordinator with everything around it that a broker would be: a clock, timers, a log, producer ids."""

from collections.abc import Callable
from dataclasses import replace

from lamina.coordinators.decision import Now, Producer, Reply, SendMarkers, SetTimer, TimerName
from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import TransactionRecord, TransactionValue
from lamina.coordinators.transaction_listing import unknown_states
from lamina.coordinators.transaction_requests import (
    BUMPING,
    AddOffsetsRequest,
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ListRequest,
    ListResponse,
    ProducerIdNeeded,
    TransactionSettings,
    Verified,
    VerifyPartitionsRequest,
)
from lamina.coordinators.transactions import TransactionDecision, TransactionShard
from lamina.errors import KafkaError
from lamina.topic_partition import TopicPartition
from tests.coordinators.snapshots import snapshot

ID = "tx"
TIMEOUT_MS = 60_000
WAITER = 7
FIRST_PRODUCER_ID = 1000


class Crash(Exception):
    """The broker died while it was asked; nobody knows what it did."""


class World:
    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.settings = settings or TransactionSettings()
        self.log: list[TransactionRecord] = []
        self.wall_ms = 1_000_000_000
        self.monotonic_ms = 5_000
        self.next_producer_id = FIRST_PRODUCER_ID
        self.crash_at = ""
        """``before`` or ``after`` the next append."""
        self.lives = -1
        self.start()

    # The broker

    def start(self) -> None:
        """Start again with nothing but the log, read from its bytes."""
        self.lives += 1
        self._known: object = None
        self.timers: dict[TimerName, int] = {}
        self.to_send: list[SendMarkers] = []
        self.shard = TransactionShard(lambda: self.settings, coordinator_epoch=self.lives)
        for record in self.log:
            read = decode_record(*encode_record(record, self.settings.transaction_version))
            assert read is not None
            self.shard.replay(read, None)
        self.carry_out(self.shard.loaded(self.now))

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.monotonic_ms)

    def carry_out(self, decision: TransactionDecision) -> object:
        if decision.records and self.crash_at:
            if self.crash_at == "after":
                self.log += decision.records
            self.crash_at = ""
            self.start()
            raise Crash
        assert self._known in (None, snapshot(self.shard)) or not decision.is_refusable, "deciding changes nothing"
        for record in decision.records:
            self._check_epoch(record)
            self.log.append(record)
            self.shard.replay(record, None)
        for change in decision.soft_changes:
            change()
        response: object = None
        for effect in decision.effects:
            if isinstance(effect, SendMarkers):
                self.to_send.append(effect)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at_monotonic_ms
            else:
                assert isinstance(effect, Reply)
                assert effect.waiter == WAITER
                response = effect.response
        self._known = snapshot(self.shard)
        if isinstance(response, KafkaError):
            raise response
        return response

    def _check_epoch(self, record: TransactionRecord) -> None:
        """Epochs only grow, and a new producer id is one that nobody had."""
        before, after = self.value(record.key.transactional_id), record.value
        if before is None or after is None:
            return
        if after.producer_id == before.producer_id:
            assert after.producer_epoch >= before.producer_epoch
        else:
            assert after.producer_epoch == 0
            ids = {old.value.producer_id for old in self.log if old.value is not None}
            assert after.producer_id not in ids

    def pass_time(self, ms: int) -> None:
        self.wall_ms += ms
        self.monotonic_ms += ms
        while True:
            due = [name for name, at_ms in self.timers.items() if at_ms <= self.monotonic_ms]
            if not due:
                return
            for name in due:
                del self.timers[name]
                self.carry_out(self.shard.on_timer(name, self.now))

    def fresh_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def value(self, transactional_id: str = ID) -> TransactionValue | None:
        """What the log says."""
        for record in reversed(self.log):
            if record.key.transactional_id == transactional_id:
                return record.value
        return None

    @property
    def status(self) -> str:
        value = self.value()
        assert value is not None
        return value.status.state_name

    # Producers

    def init(
        self,
        expected: Producer | None = None,
        transactional_id: str = ID,
        timeout_ms: int = TIMEOUT_MS,
        *,
        knows_fenced: bool = True,
    ) -> Producer:
        def ask(fresh_producer_id: int | None) -> object:
            request = InitRequest(transactional_id, timeout_ms, expected, knows_fenced, fresh_producer_id)
            return self.carry_out(self.shard.init_producer_id(request, WAITER, self.now))

        response = self._with_producer_id(ask)
        assert isinstance(response, Producer)
        return response

    def add(
        self,
        producer: Producer,
        *partitions: TopicPartition,
        version: int = BUMPING,
        transactional_id: str = ID,
        knows_fenced: bool = True,
    ) -> None:
        request = AddPartitionsRequest(transactional_id, producer, frozenset(partitions), version, knows_fenced)
        self.carry_out(self.shard.add_partitions(request, WAITER, self.now))

    def add_offsets(self, producer: Producer, group_id: str, *, knows_fenced: bool = True) -> None:
        request = AddOffsetsRequest(ID, producer, group_id, 50, knows_fenced)
        self.carry_out(self.shard.add_offsets(request, WAITER, self.now))

    def verify(self, producer: Producer, *partitions: TopicPartition) -> Verified:
        return self.shard.verify_partitions(VerifyPartitionsRequest(ID, producer, frozenset(partitions)))

    def end(
        self,
        producer: Producer,
        *,
        is_commit: bool,
        version: int = BUMPING,
        transactional_id: str = ID,
        knows_fenced: bool = True,
    ) -> Producer:
        def ask(fresh_producer_id: int | None) -> object:
            request = EndRequest(transactional_id, producer, is_commit, version, knows_fenced, fresh_producer_id)
            return self.carry_out(self.shard.end_txn(request, WAITER, self.now))

        response = self._with_producer_id(ask)
        assert isinstance(response, Producer)
        return response

    def commit(self, producer: Producer, version: int = BUMPING) -> Producer:
        return self.end(producer, is_commit=True, version=version)

    def abort(self, producer: Producer, version: int = BUMPING) -> Producer:
        return self.end(producer, is_commit=False, version=version)

    def _with_producer_id(self, ask: Callable[[int | None], object]) -> object:
        try:
            return ask(None)
        except ProducerIdNeeded:
            return ask(self.fresh_producer_id())

    # Markers

    def markers_written(self, sent: SendMarkers) -> None:
        fresh = self.fresh_producer_id() if sent.needs_producer_id else None
        self.carry_out(self.shard.markers_written(sent.transactional_id, sent.producer, self.now, fresh))

    def write_markers(self) -> list[SendMarkers]:
        """As if every partition had taken its marker at once."""
        sent, self.to_send = self.to_send, []
        for one in sent:
            self.markers_written(one)
        return sent

    # Admins

    def listed(self, request: ListRequest) -> ListResponse:
        listed = tuple(one for one in self.shard.listings(request, self.now) if one is not None)
        return ListResponse(listed, unknown_states(request))

    def set_level(self, transaction_version: int) -> None:
        self.settings = replace(self.settings, transaction_version=transaction_version)

    def listed_ids(self) -> tuple[str, ...]:
        return tuple(one.transactional_id for one in self.listed(ListRequest()).listings)
