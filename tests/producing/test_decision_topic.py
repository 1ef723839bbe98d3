"""Which state of a query is found, while the log's leader changes and its high watermark lags behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lamina.errors import ErrorCode, KafkaError, OffsetNotAvailable, OffsetOutOfRange
from lamina.peer.fetching import Fetched
from lamina.peer.listing import EARLIEST, ListedOffset
from lamina.producing.decision_topic import DecisionTopic
from lamina.records.batch import stamp
from lamina.records.record import Record, build_batch
from tests.peer.clients import client
from tests.peer.scripted import API_VERSIONS, METADATA, OFFERED, Facts, ScriptedBroker, versions_facts

FOREVER = 10_000
CREATE_TOPICS = 19


class Controller(ScriptedBroker):
    """Of so many brokers, for topics of so many replicas each."""

    def __init__(self, brokers: int, replicas: Mapping[str, int]) -> None:
        offered = {**OFFERED, CREATE_TOPICS: 7}
        super().__init__(
            {
                API_VERSIONS: lambda _: {"api_keys": versions_facts(offered)},
                METADATA: self._metadata,
                CREATE_TOPICS: self._create,
            }
        )
        self._brokers, self._replicas = range(1, brokers + 1), replicas
        self.created: list[Any] = []

    def _metadata(self, request: Any) -> Facts:
        endpoint = {"host": self.address.host, "port": self.address.port}
        return {
            "brokers": [{"node_id": one, **endpoint} for one in self._brokers],
            "controller_id": 1,
            "topics": [self._topic(one.name) for one in request.topics],
        }

    def _topic(self, name: str) -> Facts:
        if name not in self._replicas:
            return {"name": name, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        nodes = list(self._brokers)[: self._replicas[name]]
        return {"name": name, "partitions": [{"leader_id": 1, "replica_nodes": nodes}]}

    def _create(self, request: Any) -> Facts:
        self.created += request.topics
        return {"topics": [{"name": one.name} for one in request.topics]}

    def serve(self, work: Callable[[DecisionTopic], Awaitable[None]]) -> None:
        async def scenario() -> None:
            async with self, client(str(self.address)) as cluster:
                await work(DecisionTopic(cluster, "decisions"))

        asyncio.run(scenario())


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, None), (2, 2, None), (3, 3, "2"), (9, 3, "2")])
def test_the_topic_is_created_with_as_many_replicas_as_data_should_have(
    brokers: int, replicas: int, in_sync: str | None
) -> None:
    controller = Controller(brokers, {})
    controller.serve(lambda topic: topic.ensure())
    (created,) = controller.created
    configs = {one.name: one.value for one in created.configs}
    assert (created.num_partitions, created.replication_factor) == (1, replicas)
    assert int(configs["max.message.bytes"]) == 32 * 1024 * 1024
    assert (configs["cleanup.policy"], configs.get("min.insync.replicas")) == ("compact", in_sync)


@pytest.mark.parametrize(("replicas", "is_told"), [(1, True), (2, True), (3, False)])
def test_decisions_that_are_less_durable_than_rows_are_told(
    replicas: int, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    controller = Controller(3, {"decisions": replicas, "orders": 3})
    controller.serve(lambda topic: topic.warn_if_less_durable("orders"))
    sentence = f"topic decisions has fewer replicas ({replicas}) than topic orders (3), whose rows it decides"
    assert (sentence in caplog.text) == is_told


@dataclass
class LaggingLog:
    """A new leader shows what it has up to its high watermark, which reaches the end after some fetches."""

    batches: list[bytes]
    high_watermarks: list[int] = field(default_factory=list)
    """One after the other; then it is the end."""
    log_start: int = 0

    async def list_offset(self, topic: str, partition: int, timestamp_ms: int) -> ListedOffset:
        return ListedOffset(0 if timestamp_ms == EARLIEST else len(self.batches), -1, 0)

    async def fetch(self, topic: str, partition: int, offset: int, *, max_bytes: int) -> Fetched:
        high_watermark = self.high_watermarks.pop(0) if self.high_watermarks else len(self.batches)
        if offset < self.log_start:
            raise OffsetOutOfRange("before the log start")
        records = b"".join(self.batches[offset:high_watermark])
        return Fetched(memoryview(records), high_watermark, high_watermark, 0, ())


def log(states: Iterable[tuple[bytes, bytes]], **facts: Any) -> LaggingLog:
    """A record of each."""
    return LaggingLog([_batch(offset, *state) for offset, state in enumerate(states)], **facts)


def _batch(offset: int, key: bytes, value: bytes) -> bytes:
    batch = build_batch([Record(0, 1, key, value)])
    stamp(batch, 0, offset, 0)
    return bytes(batch)


def find(leader: LaggingLog) -> bytes | None:
    return asyncio.run(DecisionTopic(leader, "decisions").find("query"))  # type: ignore[arg-type]


def test_the_newest_state_of_a_query_is_found() -> None:
    assert find(log([(b"query", b"old"), (b"query", b"new"), (b"other", b"x")])) == b"new"
    assert find(log([(b"query", b"old"), *[(b"other", b"x")] * 5_000])) == b"old"
    assert find(log([(b"other", b"x")])) is None


@pytest.mark.parametrize("high_watermarks", [[0], [1], [0, 0, 1], [1, 1, 1]])
def test_a_new_leader_whose_high_watermark_lags_is_waited_for(high_watermarks: list[int]) -> None:
    assert find(log([(b"query", b"old"), (b"query", b"new")], high_watermarks=high_watermarks)) == b"new"


@pytest.mark.parametrize(
    ("facts", "error"),
    [({"high_watermarks": [1] * FOREVER}, OffsetNotAvailable), ({"log_start": 1}, OffsetOutOfRange)],
)
def test_an_older_state_is_not_believed_where_a_newer_one_may_be(facts: Any, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        find(log([(b"query", b"old"), (b"query", b"new")], **facts))
