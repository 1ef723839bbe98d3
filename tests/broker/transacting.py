"""Requests of transactional producers to a broker in process, one call each: what it answers, and what readers see."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from lamina.records.batch import walk
from lamina.records.record import Record, build_batch, iterate_records
from tests.broker.in_process import InProcessBroker

PRODUCE, FETCH, FIND_COORDINATOR, OFFSET_FETCH = 0, 1, 10, 9
INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
TIMEOUT_MS = 60_000
TRANSACTION_KEY = 1
FEW_PARTITIONS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


class Me(NamedTuple):
    """Who a producer is."""

    id: int
    epoch: int


class Versions(NamedTuple):
    """What clients of an age send."""

    init: int = 4
    produce: int = 11
    add: int = 3
    add_offsets: int = 3
    commit: int = 3
    end: int = 3

    @property
    def adds_itself(self) -> bool:
        return self.produce < 12


CLASSIC = Versions()
BUMPING = Versions(init=5, produce=12, commit=5, end=5)


class Answer(NamedTuple):
    code: int
    me: Me


class Transacting:
    """One transactional id; ``me`` is given with each request, so that anybody may claim to be anybody."""

    def __init__(self, broker: InProcessBroker, transactional_id: str = "orders") -> None:
        self.broker = broker
        self.id = transactional_id

    def find(self) -> None:
        """What every client asks first: it makes the topics."""
        for key_type in (0, TRANSACTION_KEY):
            answer = self.broker.ask(FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=[self.id])
            assert answer.coordinators[0].error_code == 0, answer
        self.broker.settle()

    def init(self, version: int = 4, expected: Me = Me(-1, -1), timeout_ms: int = TIMEOUT_MS) -> Answer:  # noqa: B008
        answer = self.broker.ask(
            INIT_PRODUCER_ID,
            version,
            transactional_id=self.id,
            transaction_timeout=_timedelta(timeout_ms),
            producer_id=expected.id,
            producer_epoch=expected.epoch,
        )
        return Answer(int(answer.error_code), Me(answer.producer_id, answer.producer_epoch))

    def started(self, version: int = 4) -> Me:
        code, me = self.init(version)
        assert code == 0, code
        return me

    def add(self, me: Me, *partitions: tuple[str, int], version: int = 3) -> list[int]:
        answer = self.broker.ask(
            ADD_PARTITIONS,
            version,
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=me.id,
            v3_and_below_producer_epoch=me.epoch,
            v3_and_below_topics=[{"name": topic, "partitions": [index]} for topic, index in partitions],
        )
        return [
            int(one.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]

    def add_as_broker(
        self, me: Me, *partitions: tuple[str, int], version: int = 5, verify_only: bool = False
    ) -> list[int]:
        transaction = {
            "transactional_id": self.id,
            "producer_id": me.id,
            "producer_epoch": me.epoch,
            "verify_only": verify_only,
            "topics": [{"name": topic, "partitions": [index]} for topic, index in partitions],
        }
        answer = self.broker.ask(ADD_PARTITIONS, version, transactions=[transaction])
        assert answer.error_code == 0
        (result,) = answer.results_by_transaction
        assert result.transactional_id == self.id
        return [int(one.partition_error_code) for topic in result.topic_results for one in topic.results_by_partition]

    def add_offsets(self, me: Me, group: str = "readers", version: int = 3) -> int:
        answer = self.broker.ask(
            ADD_OFFSETS,
            version,
            transactional_id=self.id,
            producer_id=me.id,
            producer_epoch=me.epoch,
            group_id=group,
        )
        return int(answer.error_code)

    def produce(
        self,
        me: Me,
        values: Iterable[bytes],
        sequence: int = 0,
        version: int = 11,
        partition: int = 0,
        topic: str = "t",
    ) -> int:
        now_ms = self.broker.parts.clocks.now_ms()
        batch = build_batch(
            [Record(number, now_ms, None, value) for number, value in enumerate(values)],
            producer_id=me.id,
            producer_epoch=me.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        answer = self.broker.ask(
            PRODUCE,
            version,
            transactional_id=self.id,
            acks=-1,
            topic_data=[{"name": topic, "partition_data": [{"index": partition, "records": bytes(batch)}]}],
        )
        return int(answer.responses[0].partition_responses[0].error_code)

    def commit_offset(
        self, me: Me, offset: int, group: str = "readers", version: int = 3, topic: str = "t", **member: Any
    ) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        partition["committed_metadata"] = ""  # type: ignore[assignment]
        member.setdefault("generation_id", -1)
        answer = self.broker.ask(
            TXN_OFFSET_COMMIT,
            version,
            transactional_id=self.id,
            group_id=group,
            producer_id=me.id,
            producer_epoch=me.epoch,
            topics=[{"name": topic, "partitions": [partition]}],
            **member,
        )
        return int(answer.topics[0].partitions[0].error_code)

    def end(self, me: Me, *, commit: bool = True, version: int = 3, settled: bool = True) -> Answer:
        answer = self.broker.ask(
            END, version, transactional_id=self.id, producer_id=me.id, producer_epoch=me.epoch, committed=commit
        )
        if settled:
            self.broker.settle()
        told = getattr(answer, "producer_id", me.id), getattr(answer, "producer_epoch", me.epoch)
        return Answer(int(answer.error_code), me if told[0] < 0 else Me(*told))

    def transact(
        self, me: Me, values: Iterable[bytes], versions: Versions = CLASSIC, sequence: int = 0, *, commit: bool = True
    ) -> Me:
        """A whole transaction to which nothing happens. Returns who the producer is after it."""
        if versions.adds_itself:
            assert self.add(me, ("t", 0), version=versions.add) == [0]
        assert self.produce(me, values, sequence, versions.produce) == 0
        code, after = self.end(me, commit=commit, version=versions.end)
        assert code == 0
        return after

    def describe(self) -> Any:
        return self.broker.ask(DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.id]).transaction_states[0]

    def state(self) -> str:
        described = self.describe()
        assert described.error_code == 0
        return str(described.transaction_state)


def committed(broker: InProcessBroker, topic: str = "t", partition: int = 0) -> list[bytes]:
    """What a reader of committed records sees, as every client works it out from the answer of Fetch."""
    answer = broker.ask(
        FETCH,
        12,
        replica_id=-1,
        max_bytes=1 << 30,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        rack_id="",
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "current_leader_epoch": -1,
                        "last_fetched_epoch": -1,
                        "log_start_offset": -1,
                        "partition_max_bytes": 1 << 30,
                    }
                ],
            }
        ],
    )
    told = answer.responses[0].partitions[0]
    assert told.error_code == 0
    return seen_by_readers(bytes(told.records or b""), told.aborted_transactions or ())


def seen_by_readers(data: bytes, aborted: Iterable[Any]) -> list[bytes]:
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    aborting: set[int] = set()
    seen: list[bytes] = []
    for position, header in walk(data):
        while waiting and waiting[0].first_offset <= header.base_offset:
            aborting.add(waiting.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            seen += [record.value or b"" for record in iterate_records(data, position, header, 1 << 30)]
    return seen


def fetched_offset(
    broker: InProcessBroker, group: str = "readers", *, stable: bool = False, topic: str = "t"
) -> tuple[int, int]:
    """The committed offset of partition 0, and the error."""
    answer = broker.ask(
        OFFSET_FETCH,
        8,
        groups=[{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}],
        require_stable=stable,
    )
    (partition,) = answer.groups[0].topics[0].partitions
    return int(partition.committed_offset), int(partition.error_code)


def _timedelta(milliseconds: int) -> Any:
    from datetime import timedelta

    return timedelta(milliseconds=milliseconds)
