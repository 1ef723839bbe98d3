"""A stream in the order in which Spark's engine calls it, on a real broker.

The engine asks for ``initialOffset`` again until a first batch is in its commit log, also when another driver does that
batch again.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition

from lamina.arrow.errors import DataLoss
from pyspark_lamina.columns import Field
from pyspark_lamina.ranges import TopicRange
from pyspark_lamina.stream_reading import TopicStreamReader
from tests.arrow.topics import create, delete, delete_head, numbered, produce
from tests.broker.process import BrokerProcess

STRICT_OR_NOT = pytest.mark.parametrize("strict", ["true", "false"])
OFFSET = Field("offset", "bigint", may_be_null=True)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was, after errors that hide their stacks."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "0")


class Engine:
    """Its checkpoint outlives it."""

    def __init__(self, reader: TopicStreamReader, planned: list[str], is_committed: list[bool]) -> None:
        self.reader = reader
        self.planned = planned
        """The ends of the batches, as text."""
        self.is_committed = is_committed

    def plan(self) -> bool:
        """Whether there is a batch that has to be done."""
        if len(self.planned) > len(self.is_committed):
            return True
        start = self._start(len(self.planned))
        end = json.dumps(self.reader.latestOffset(json.loads(start), self.reader.getDefaultReadLimit()))
        if end == start and self.planned:  # The first one is done also where there is nothing to read.
            return False
        self.planned.append(end)
        return True

    def ranges(self) -> list[tuple[int, int]]:
        """Of the batch that is planned and not committed."""
        start, end = self._start(len(self.is_committed)), self.planned[-1]
        tasks = self.reader.partitions(json.loads(start), json.loads(end))
        return [(task.asked.start, task.asked.end) for task in tasks if isinstance(task, TopicRange)]

    def tasks(self) -> list[InputPartition]:
        return self.reader.partitions(json.loads(self._start(len(self.is_committed))), json.loads(self.planned[-1]))

    def commit(self) -> None:
        self.is_committed.append(True)

    def _start(self, batch: int) -> str:
        return self.planned[batch - 1] if batch else json.dumps(self.reader.initialOffset())


class Query:
    """One checkpoint, and a driver each time that it is started."""

    def __init__(self, broker: BrokerProcess, **options: str) -> None:
        servers = {"kafka.bootstrap.servers": broker.address, "kafka.retry.backoff.ms": "1"}
        self._options: Any = CaseInsensitiveDict(servers | options)
        self._planned: list[str] = []
        self._is_committed: list[bool] = []

    @contextmanager
    def start(self, *, available_now: bool = False, **more: str) -> Iterator[Engine]:
        reader = TopicStreamReader(CaseInsensitiveDict({**self._options, **more}), [OFFSET])
        try:
            if available_now:
                reader.prepareForTriggerAvailableNow()
            yield Engine(reader, self._planned, self._is_committed)
        finally:
            reader.stop()


@STRICT_OR_NOT
def test_a_stream_of_a_live_topic_begins_where_it_ended_once(broker: BrokerProcess, topic: str, strict: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    with Query(broker, subscribe=topic, failOnDataLoss=strict).start() as engine:
        engine.reader.initialOffset()
        produce(broker.address, topic, numbered(2))
        assert engine.plan()
        produce(broker.address, topic, numbered(4))
        assert engine.ranges() == [(5, 7)]
        engine.commit()
        assert engine.plan()
        assert engine.ranges() == [(7, 11)]


@STRICT_OR_NOT
def test_trigger_available_now_on_a_live_topic(broker: BrokerProcess, topic: str, strict: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    query = Query(broker, subscribe=topic, failOnDataLoss=strict)
    with query.start(available_now=True) as engine:
        produce(broker.address, topic, numbered(3))
        assert engine.plan()
        produce(broker.address, topic, numbered(3))
        assert engine.ranges() == []
        engine.commit()
        assert not engine.plan()
    with query.start(available_now=True) as engine:
        produce(broker.address, topic, numbered(3))
        assert engine.plan()
        assert engine.ranges() == [(8, 11)]


@STRICT_OR_NOT
@pytest.mark.parametrize("records", [0, 2])
def test_a_first_batch_that_is_done_again_is_the_same_one(
    broker: BrokerProcess, topic: str, strict: str, records: int
) -> None:
    create(broker.address, topic, 2)
    produce(broker.address, topic, numbered(5))
    query = Query(broker, subscribe=topic, failOnDataLoss=strict)
    end = 5 + records
    wanted = [(5, end), (0, records)] if records else []
    with query.start() as engine:
        engine.reader.initialOffset()
        for partition in range(2):
            produce(broker.address, topic, numbered(records), partition=partition)
        assert engine.plan()
        assert engine.ranges() == wanted
    for _ in range(2):
        produce(broker.address, topic, numbered(9))
        with query.start() as engine:
            assert engine.ranges() == wanted
    with query.start() as engine:
        assert engine.ranges() == wanted
        engine.commit()
        assert engine.plan()
        assert engine.ranges() == [(end, end + 18)]
        engine.commit()
        assert not engine.plan()


def test_what_retention_took_from_a_first_batch_is_told_when_it_is_done_again(
    broker: BrokerProcess, topic: str
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    query = Query(broker, subscribe=topic, startingOffsets="earliest")
    with query.start() as engine:
        assert engine.plan()
        assert engine.ranges() == [(0, 5)]
    delete_head(broker.address, topic, 0, before=3)
    with query.start() as engine:
        (task,) = engine.tasks()
        with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 begins at offset 3, and 0 was asked for"):
            list(engine.reader.read(task))


def test_a_topic_made_anew_that_is_as_long_as_what_was_read_is_read(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    query = Query(broker, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    with query.start() as engine:
        assert engine.plan()
        engine.commit()
        assert not engine.plan()
        delete(broker.address, topic)
        create(broker.address, topic)
        produce(broker.address, topic, numbered(5))
        assert engine.plan()
        assert engine.ranges() == [(0, 5)]
        engine.commit()
        assert not engine.plan()


def make_anew(servers: str, topic: str) -> None:
    delete(servers, topic)
    create(servers, topic)


@pytest.mark.parametrize("happens", [delete, make_anew])
def test_a_topic_that_goes_between_the_plan_and_the_tasks_is_data_loss(
    broker: BrokerProcess, topic: str, happens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    with Query(broker, subscribe=topic, startingOffsets="earliest", readFiles="never").start() as engine:
        assert engine.plan()
        lookup = engine.reader._cluster
        cut = lookup.cut

        def then_cut(*given: Any) -> Any:
            found = cut(*given)
            happens(broker.address, topic)
            return found

        monkeypatch.setattr(lookup, "cut", then_cut)
        (task,) = engine.tasks()
        with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 (does not exist any more|was deleted and made)"):
            list(engine.reader.read(task))
