"""How far a stream goes from batch to batch, on a real broker and without Spark."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql.datasource import CaseInsensitiveDict

from lamina.arrow.cluster import Topic, describe_topics
from lamina.arrow.errors import DataLoss, ReadError
from lamina.arrow.reading import read_range
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.errors import KafkaError
from pyspark_lamina.lookup import Lookup
from pyspark_lamina.offsets import Offsets
from pyspark_lamina.options import parse_options
from pyspark_lamina.ranges import TopicRange, as_tasks
from pyspark_lamina.stream_progress import StreamProgress
from tests.arrow.topics import create, delete, make_compacted, numbered, produce, transact
from tests.broker.process import BrokerProcess, eventually
from tests.broker.test_compaction import QUICKLY

Start = Callable[..., BrokerProcess]


@dataclass
class PlayedTime:
    ms: int = 0

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.ms * 1_000_000, lambda: self.ms * 1_000_000)


class Stream:
    def __init__(self, lookup: Lookup, progress: StreamProgress) -> None:
        self.lookup = lookup
        self.progress = progress

    def batches(self, reached: Offsets, most: int = 50) -> list[Offsets]:
        """The ends of all batches that there are now."""
        ends: list[Offsets] = []
        while (end := self.progress.next(reached, is_limited=True)) != reached:
            ends.append(end)
            reached = end
            assert len(ends) < most
        return ends


@contextmanager
def stream(broker: BrokerProcess, clocks: Clocks = SYSTEM_CLOCKS, **given: str) -> Iterator[Stream]:
    servers = {
        "kafka.bootstrap.servers": broker.address,
        "kafka.fetch.max.wait.ms": "50",
        "kafka.retry.backoff.ms": "1",
    }
    options = parse_options(CaseInsensitiveDict(servers | given), is_stream=True)
    with Lookup(options, clocks) as lookup:
        yield Stream(lookup, StreamProgress(lookup, options, clocks))


def offsets(topic: str, *offsets: int) -> str:
    return json.dumps({topic: dict(enumerate(offsets))})


def test_a_new_stream_begins_where_it_is_told(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic, 2)
    produce(broker.address, topic, numbered(5), timestamps=[1000 * n for n in range(1, 6)])

    def initial(**given: str) -> list[int]:
        with stream(broker, SYSTEM_CLOCKS, subscribe=topic, **given) as running:
            return list(running.progress.initial().values())

    assert initial() == [5, 0]
    assert initial(startingOffsets="earliest") == [0, 0]
    assert initial(startingOffsets=offsets(topic, 3, -2)) == [3, 0]
    by_time = {"startingOffsetsByTimestampStrategy": "latest"}
    assert initial(startingTimestamp="2500", **by_time) == [2, 0]
    assert initial(startingOffsetsByTimestamp=offsets(topic, 9000, 0), **by_time) == [5, 0]
    assert initial(startingOffsets=offsets(topic, 9, 0), failOnDataLoss="false") == [5, 0]
    for given, sentence in (
        ({"startingTimestamp": "9000"}, f"{topic}-0 has no record at or after timestamp 9000"),
        ({"startingOffsets": offsets(topic, 9, 0)}, f"data loss: {topic}-0 holds offsets from 0 to 5, and 9"),
        ({"startingOffsets": offsets(topic, 9)}, f"startingOffsets must name every partition .* {topic}-1$"),
    ):
        with pytest.raises(ReadError, match=f"^{sentence}"):
            initial(**given)
    with pytest.raises(ReadError, match=r"^there is no topic 'nowhere'$"), stream(broker, subscribe="nowhere") as none:
        none.progress.initial()


def test_offsets_are_shared_by_how_many_there_are(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic, 3)
    produce(broker.address, topic, numbered(60))
    produce(broker.address, topic, numbered(20), partition=1)
    nothing = {(topic, partition): 0 for partition in range(3)}
    with stream(broker, subscribe=topic, maxOffsetsPerTrigger="40") as limited:
        assert [list(end.values()) for end in limited.batches(nothing)] == [[30, 10, 0], [60, 20, 0]]
        # Spark's engine may want all at once, whatever the options say.
        assert list(limited.progress.next(nothing, is_limited=False).values()) == [60, 20, 0]
        assert limited.progress.latest == {(topic, 0): 60, (topic, 1): 20, (topic, 2): 0}


def test_records_and_bytes_are_exact_on_a_compacted_topic(own_broker: Start) -> None:
    broker = own_broker(*QUICKLY)
    make_compacted(broker.address, broker.log_dir, "t")

    def count(reached: Offsets, end: Offsets, running: Stream) -> int:
        options = running.lookup._options
        ranges = running.lookup.cut(running.progress.ranges(reached, end), options.bounds)
        tasks = as_tasks(ranges, running.lookup.topics(), options, is_stream=True)
        asked = [task.asked for task in tasks if isinstance(task, TopicRange)]
        return sum(batch.num_rows for one in asked for batch in read_range(options.client, one, ["offset"]))

    begin = {("t", 0): 0}
    with stream(broker, subscribe="t") as whole:
        records = count(begin, {("t", 0): 1500}, whole)
        assert records < 600
    with stream(broker, subscribe="t", maxRecordsPerTrigger="40") as limited:
        ends = limited.batches(begin)
        counts = [count(start, end, limited) for start, end in zip([begin, *ends], ends, strict=False)]
        assert sum(counts) == records
        assert all(0 < taken <= 40 for taken in counts)
        assert min(counts[:-1]) > 20
    with stream(broker, subscribe="t", maxBytesPerTrigger="5k") as limited:
        ends = limited.batches(begin)
        counts = [count(start, end, limited) for start, end in zip([begin, *ends], ends, strict=False)]
        assert sum(counts) == records
        assert len(ends) > 1


def test_few_records_wait_until_there_are_more_or_it_takes_too_long(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    time = PlayedTime()
    limits = {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "60s"}
    with stream(broker, time.clocks, subscribe=topic, **limits) as waiting:
        assert waiting.batches({(topic, 0): 0}) == [{(topic, 0): 5}]  # The first batch never waits.
        produce(broker.address, topic, numbered(9))
        assert waiting.batches({(topic, 0): 5}) == []
        time.ms += 59_999
        assert waiting.batches({(topic, 0): 5}) == []
        time.ms += 1
        assert waiting.batches({(topic, 0): 5}) == [{(topic, 0): 14}]
        produce(broker.address, topic, numbered(10))
        assert waiting.batches({(topic, 0): 14}) == [{(topic, 0): 24}]
    with stream(broker, time.clocks, subscribe=topic, **limits) as available:
        available.progress.pin()
        produce(broker.address, topic, numbered(50))
        # With Trigger.AvailableNow nothing waits, and nothing comes from beyond the end that was found first.
        assert available.batches({(topic, 0): 23}) == [{(topic, 0): 24}]


def test_new_partitions_and_new_topics_are_read_from_their_start(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    with stream(broker, subscribePattern=f"{topic}.*") as running:
        reached = running.progress.initial()
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        create(broker.address, f"{topic}-other")
        produce(broker.address, topic, numbered(3), partition=1)
        produce(broker.address, f"{topic}-other", numbered(2))
        (end,) = running.batches(reached)
        assert end == {(topic, 0): 0, (topic, 1): 3, (f"{topic}-other", 0): 2}
        assert running.progress.ranges(reached, end) == {(topic, 1): (0, 3), (f"{topic}-other", 0): (0, 2)}


def test_new_topics_are_noticed_once_what_is_known_of_topics_is_too_old(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    time = PlayedTime()
    given = {"subscribePattern": f"{topic}.*", "partition.metadata.cache.ttl.ms": "60000"}
    with stream(broker, time.clocks, **given) as running:
        reached = running.progress.initial()
        create(broker.address, f"{topic}-later")
        produce(broker.address, f"{topic}-later", numbered(2))
        time.ms += 59_999
        assert running.batches(reached) == []
        time.ms += 1
        assert running.batches(reached) == [{(topic, 0): 0, (f"{topic}-later", 0): 2}]


def test_a_topic_that_is_deleted_is_lost_or_left_out(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    create(broker.address, f"{topic}-stays")
    both = f"{topic},{topic}-stays"
    with stream(broker, subscribe=both) as strict, stream(broker, subscribe=both, failOnDataLoss="false") as tolerant:
        reached = strict.progress.initial()
        assert tolerant.progress.initial() == reached
        delete(broker.address, topic)
        with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 cannot be found any more"):
            strict.progress.next(reached, is_limited=True)
        with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 cannot be found any more"):
            strict.progress.ranges(reached, reached)
        for _ in range(2):  # Spark's engine asks again and again.
            assert tolerant.progress.next(reached, is_limited=True) == reached
            assert tolerant.progress.is_idle
        assert tolerant.progress.ranges(reached, reached) == {}
        produce(broker.address, f"{topic}-stays", numbered(2))
        # Its position is kept, for its id would tell another topic of that name.
        (end,) = tolerant.batches(reached)
        assert end == {(topic, 0): 0, (f"{topic}-stays", 0): 2}
        assert tolerant.progress.ranges(reached, end) == {(f"{topic}-stays", 0): (0, 2)}
        assert tolerant.batches(end) == []
        create(broker.address, topic)
        produce(broker.address, topic, numbered(3))
        assert tolerant.batches(end) == [{(topic, 0): 3, (f"{topic}-stays", 0): 2}]
    gone, again = caplog.messages
    assert gone == f"data loss: {topic}-0 cannot be found any more; skipped {topic}-0 from offset 0 on"
    assert again.startswith(f"data loss: topic {topic} was deleted and made again")


def test_a_topic_that_is_made_again_is_another_one(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(3))
    reached = {(topic, 0): 3}
    with stream(broker, subscribe=topic) as strict, stream(broker, subscribe=topic, failOnDataLoss="false") as tolerant:
        for running in (strict, tolerant):
            assert running.batches(reached) == []
        delete(broker.address, topic)
        create(broker.address, topic)
        produce(broker.address, topic, numbered(9))
        with pytest.raises(DataLoss, match=rf"^data loss: topic {topic} was deleted and made again \(its topic id is"):
            strict.progress.next(reached, is_limited=True)
        end = tolerant.progress.next(reached, is_limited=True)
        assert tolerant.progress.ranges(reached, end) == {(topic, 0): (0, 9)}
        assert tolerant.batches(end) == []
    again = f"topic {topic} was deleted and made again (its topic id is another one)"
    assert caplog.messages == [f"data loss: {again}; skipped {topic}-0 from offset 3 on"]
    sentence = f"^data loss: {topic}-0 ends at offset 9, and the query has come to 12"
    with stream(broker, subscribe=topic) as restarted, pytest.raises(DataLoss, match=sentence):
        restarted.progress.next({(topic, 0): 12}, is_limited=True)


def test_a_topic_that_is_made_again_while_the_query_is_stopped_is_told_by_the_id_in_the_checkpoint(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    def make(records: int) -> dict[str, UUID | None]:
        create(broker.address, topic)
        produce(broker.address, topic, numbered(records))
        with stream(broker, subscribe=topic) as running:
            running.progress.initial()
            return running.progress.topic_ids

    old_ids = make(3)
    start, reached = {(topic, 0): 1}, {(topic, 0): 3}
    delete(broker.address, topic)
    new_ids = make(9)
    again = f"topic {topic} was deleted and made again (its topic id is another one)"
    with stream(broker, subscribe=topic) as strict:
        with pytest.raises(DataLoss, match=f"^data loss: {re.escape(again)}"):
            strict.progress.next(reached, old_ids, is_limited=True)
        # The batch that had been planned is done again.
        with pytest.raises(DataLoss, match=f"^data loss: {re.escape(again)}"):
            strict.progress.ranges(start, reached, old_ids, old_ids)
    with stream(broker, subscribe=topic, failOnDataLoss="false") as tolerant:
        assert tolerant.progress.ranges(start, reached, old_ids, old_ids) == {}
        end = tolerant.progress.next(reached, old_ids, is_limited=True)
        assert (end, tolerant.progress.topic_ids) == ({(topic, 0): 9}, new_ids)
        assert tolerant.progress.ranges(reached, end, old_ids, new_ids) == {(topic, 0): (0, 9)}
        assert tolerant.progress.next(end, new_ids, is_limited=True) == end
    with stream(broker, subscribe=topic, failOnDataLoss="false") as restarted:
        assert restarted.progress.ranges(reached, end, old_ids, new_ids) == {(topic, 0): (0, 9)}
    assert caplog.messages == [f"data loss: {again}; skipped {topic}-0 from offset {at} on" for at in (1, 3)]


def test_an_open_transaction_holds_committed_reads_back(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    transact(broker.address, topic, [b"yes"], commits=True)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": f"{topic}-open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    with stream(broker, SYSTEM_CLOCKS, subscribe=topic, **{"kafka.isolation.level": "read_committed"}) as committed:
        assert committed.batches({(topic, 0): 0}) == [{(topic, 0): 2}]
        producer.commit_transaction(30)
        assert committed.batches({(topic, 0): 2}) == [{(topic, 0): 4}]


def test_a_group_is_told_of_every_batch_that_ended_also_of_the_last(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(7))
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": f"group-{topic}", "group.protocol": "consumer"}
    )

    def committed() -> int:
        (found,) = consumer.committed([Partition(topic, 0)], 30)
        return int(found.offset)

    with stream(broker, subscribe=topic, commitGroup=f"group-{topic}", maxOffsetsPerTrigger="4") as running:
        start = {(topic, 0): 0}
        first = running.progress.next(start, is_limited=True)
        assert committed() == 0  # A batch that was only planned is not told of.
        second = running.progress.next(first, is_limited=True)
        assert committed() == 4
        assert running.batches(second) == []
        assert committed() == 7
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
        produce(broker.address, topic, numbered(1))
        with pytest.raises(KafkaError, match=f"^commitGroup: offset of {topic}-0 cannot be committed to group group-"):
            running.progress.next({(topic, 0): 8}, is_limited=True)
    consumer.close()


def test_trigger_available_now_ends_no_earlier_than_a_new_stream_begins(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    for strict in ("true", "false"):
        with stream(broker, subscribe=topic, failOnDataLoss=strict) as running:
            running.progress.pin()
            produce(broker.address, topic, numbered(3))
            begun_at = running.progress.initial()
            produce(broker.address, topic, numbered(3))
            assert running.progress.initial() == begun_at
            assert running.batches(begun_at) == []
    assert begun_at == {(topic, 0): 14}


def test_trigger_available_now_ends_where_a_topic_ends_that_was_made_anew_meanwhile(
    broker: BrokerProcess, topic: str
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    with stream(broker, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false") as running:
        running.progress.pin()
        reached = running.progress.initial()
        delete(broker.address, topic)
        create(broker.address, topic)
        produce(broker.address, topic, numbered(2))
        assert running.batches(reached) == [{(topic, 0): 2}]


@contextmanager
def lagging(answers: list[Callable[[dict[str, Topic]], dict[str, Topic]]]) -> Iterator[None]:
    """The next answers about topics come from a broker that has not heard of the newest."""

    async def describe(*given: Any) -> dict[str, Topic]:
        topics = await describe_topics(*given)
        return answers.pop(0)(topics) if answers else topics

    with patch("lamina.arrow.cluster.describe_topics", describe):
        yield
    assert not answers


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_broker_that_lags_behind_makes_a_query_forget_nothing(
    broker: BrokerProcess, topic: str, strict: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))

    def knows_nothing(_: dict[str, Topic]) -> dict[str, Topic]:
        return {}

    def knows_one_before(topics: dict[str, Topic]) -> dict[str, Topic]:
        return {topic: topics[topic]._replace(topic_id=UUID(int=7))}

    def knows_no_partition(topics: dict[str, Topic]) -> dict[str, Topic]:
        return {topic: topics[topic]._replace(leaders={})}

    reached = {(topic, 0): 5}
    with stream(broker, subscribe=topic, failOnDataLoss=strict) as running:
        running.progress.initial()
        for answer in (knows_nothing, knows_one_before, knows_no_partition):
            with lagging([answer]):
                assert running.batches(reached) == []
            with lagging([answer]):
                assert running.progress.ranges({(topic, 0): 3}, reached, {}, running.progress.topic_ids) == {
                    (topic, 0): (3, 5)
                }
    assert caplog.messages == []


def test_a_broker_that_lags_behind_is_asked_for_the_end_of_trigger_available_now(
    broker: BrokerProcess, topic: str
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    with stream(broker, subscribe=topic) as running:
        with lagging([lambda _: {}]):
            running.progress.pin()
        assert running.batches({(topic, 0): 3}) == [{(topic, 0): 5}]
        produce(broker.address, topic, numbered(5))
        assert running.batches({(topic, 0): 5}) == []


def test_a_topic_that_is_back_goes_on_where_it_was(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(5))
    with stream(broker, subscribe=topic, failOnDataLoss="false") as running:
        running.progress.initial()
        with lagging([lambda _: {}] * 7):
            # It is asked for again a few times; then it is believed, and asked for once each time.
            assert running.batches({(topic, 0): 3}) == []
            assert running.batches({(topic, 0): 3}) == []
        assert running.batches({(topic, 0): 3}) == [{(topic, 0): 5}]
        assert running.progress.ranges({(topic, 0): 3}, {(topic, 0): 5}) == {(topic, 0): (3, 5)}
