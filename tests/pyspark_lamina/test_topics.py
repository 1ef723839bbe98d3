"""Every kind of topic, whole: a real broker, and one Spark for all tests (``make peers-spark``)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.arrow.topics import (
    create,
    delete,
    delete_head,
    make_compacted,
    numbered,
    produce,
    transact,
    update_until_compacted,
)
from tests.broker.process import BrokerProcess
from tests.broker.test_compaction import QUICKLY
from tests.pyspark_lamina.reading import Topics, rows
from tests.pyspark_lamina.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Start = Callable[..., BrokerProcess]
KEYS = "partition int, offset long, key binary, value binary"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def topics(spark: SparkSession, broker: BrokerProcess) -> Topics:
    return Topics(spark, broker.address)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_in_many_tasks(topics: Topics, topic: str, codec: str) -> None:
    create(topics.servers, topic, 3)
    for partition in (0, 2):
        config: dict[str, str | int] = {"compression.type": codec, "batch.num.messages": 50}
        produce(topics.servers, topic, numbered(3000), partition=partition, config=config)
    frame = topics.load({"subscribe": topic, "minPartitions": "7"}, KEYS)
    assert frame.rdd.getNumPartitions() >= 7
    expected = [(partition, n, b"k%d" % n, b"v%d" % n) for partition in (0, 2) for n in range(3000)]
    assert rows(frame.orderBy("partition", "offset")) == expected


def test_ten_thousand_batches_of_one_record(topics: Topics, topic: str) -> None:
    create(topics.servers, topic)
    produce(topics.servers, topic, numbered(10_000), config={"batch.num.messages": 1, "linger.ms": 0})
    frame = topics.load({"subscribe": topic, "maxRecordsPerPartition": "2500"}, "offset long")
    assert frame.rdd.getNumPartitions() >= 4
    by_bytes = topics.load({"subscribe": topic, "maxBytesPerPartition": "200k"}, "offset long")
    assert by_bytes.rdd.getNumPartitions() >= 3
    for one in (frame, by_bytes):
        assert one.selectExpr("count(*)", "count(DISTINCT offset)", "sum(offset)").first() == (
            10_000,
            10_000,
            49_995_000,
        )


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_value_of_64_mebibytes_through_sink_and_source(spark: SparkSession, own_broker: Start, codec: str) -> None:
    broker = own_broker("--set", "message.max.bytes=80000000")
    create(broker.address, "t")
    frame = spark.range(3).selectExpr("IF(id = 1, repeat('x', 64 << 20), string(id)) AS value").coalesce(1)
    writer = frame.write.format("lamina").mode("append").option("kafka.bootstrap.servers", broker.address)
    writer.option("topic", "t").option("kafka.compression.type", codec).save()
    read = Topics(spark, broker.address).load({"subscribe": "t"})
    assert rows(read.selectExpr("length(value)").orderBy("offset")) == [(1,), (64 << 20,), (1,)]


def test_committed_records_alone(topics: Topics, topic: str) -> None:
    create(topics.servers, topic)
    for number in range(6):
        transact(topics.servers, topic, [b"%d" % number] * 100, commits=number % 2 == 0)
    committed = topics.load({"subscribe": topic, "kafka.isolation.level": "read_committed"}, "value binary")
    assert rows(committed.groupBy("value").count().orderBy("value")) == [(b"0", 100), (b"2", 100), (b"4", 100)]
    assert topics.load({"subscribe": topic}).count() == 600


def test_deleted_heads(topics: Topics, topic: str) -> None:
    create(topics.servers, topic, 2)
    produce(topics.servers, topic, numbered(10))
    delete_head(topics.servers, topic, 0, before=4)
    options = {"subscribe": topic}
    assert topics.load(options).count() == 6
    from_start = options | {"startingOffsets": f'{{"{topic}":{{"0":2,"1":0}}}}'}
    assert topics.load(from_start | {"failOnDataLoss": "false"}).count() == 6
    with pytest.raises(PySparkException, match=f"data loss: {topic}-0 begins at offset 4, and 2 was asked for"):
        topics.load(from_start).count()


def test_a_compacted_topic_as_a_log_as_a_table_and_as_a_stream(
    spark: SparkSession, own_broker: Start, tmp_path: Path
) -> None:
    broker = own_broker(*QUICKLY)
    topics = Topics(spark, broker.address)
    make_compacted(broker.address, broker.log_dir, "t")
    produce(broker.address, "t", [(b"k%02d" % key, None) for key in range(25)])
    assert topics.load({"subscribe": "t"}, "offset long").count() < 600
    latest = [(b"k%02d" % key, b"29" * 20) for key in range(25, 50)]
    table = topics.load({"subscribe": "t", "view": "table"}, "key binary, value binary")
    assert rows(table.orderBy("key")) == latest
    at_plan = topics.load({"subscribe": "t", "view": "table", "endingOffsets": '{"t":{"0":1525}}'}, "key binary")
    assert at_plan.count() == 25
    options = {"subscribe": "t", "startingOffsets": "earliest", "maxRecordsPerTrigger": "100"}
    batches, _ = topics.stream(options, tmp_path / "log", "offset long, key binary, value binary")
    assert all(0 < len(batch) <= 100 for batch in batches)
    assert len(batches) >= 3
    played: dict[bytes, bytes | None] = {}
    for batch in batches:
        played |= {key: value for _, key, value in batch}
    assert sorted((key, value) for key, value in played.items() if value is not None) == latest
    update_until_compacted(broker.address, broker.log_dir, "t", [key for key, _ in latest])
    assert table.count() == len(latest)


def test_a_stream_that_is_started_again_and_again_reads_each_record_once(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    create(topics.servers, topic, 2)
    seen = []
    for round_number in range(4):
        for partition in range(2):
            produce(topics.servers, topic, numbered(25, first=25 * round_number), partition=partition)
        options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "17"}
        batches, _ = topics.stream(options, tmp_path / "checkpoint", KEYS)
        seen += [row for batch in batches for row in batch]
    assert sorted(seen) == [(partition, n, b"k%d" % n, b"v%d" % n) for partition in range(2) for n in range(100)]


def test_a_batch_that_fails_is_read_again_exactly(topics: Topics, topic: str, tmp_path: Path) -> None:
    create(topics.servers, topic)
    produce(topics.servers, topic, numbered(20))
    batches = []

    def run(fails_at: int | None) -> None:
        def sink(frame: object, batch: int) -> None:
            batches.append((batch, rows(frame)))  # type: ignore[arg-type]
            if batch == fails_at:
                raise RuntimeError("on purpose")

        stream = topics.spark.readStream.format("lamina").option("kafka.bootstrap.servers", topics.servers)
        stream = stream.option("subscribe", topic).option("startingOffsets", "earliest")
        writer = stream.option("maxOffsetsPerTrigger", 8).schema("offset long").load().writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination(300)

    with pytest.raises(PySparkException, match="on purpose"):
        run(fails_at=1)
    produce(topics.servers, topic, numbered(20))
    run(fails_at=None)
    expected = [(0, 0, 8), (1, 8, 16), (1, 8, 16), (2, 16, 24), (3, 24, 32), (4, 32, 40)]
    assert batches == [(batch, [(n,) for n in range(start, end)]) for batch, start, end in expected]


@contextmanager
def written_to(servers: str, topic: str) -> Iterator[None]:
    """All the time, by somebody else."""
    is_over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
        while not is_over.wait(0.002):
            for _ in range(20):
                producer.produce(topic, b"x")
            producer.flush()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    finally:
        is_over.set()
        writing.join()


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}], ids=["now", "always"])
def test_a_live_topic_is_read_from_its_end_on_and_each_record_once(
    topics: Topics, topic: str, tmp_path: Path, strict: str, trigger: dict[str, Any]
) -> None:
    create(topics.servers, topic)
    produce(topics.servers, topic, numbered(1000))
    seen: list[int] = []
    stream = topics.spark.readStream.format("lamina").option("kafka.bootstrap.servers", topics.servers)
    frame = stream.option("subscribe", topic).option("failOnDataLoss", strict).schema("offset long").load()
    has_enough = threading.Event()
    fails = [True]

    def sink(batch: DataFrame, number: int) -> None:
        if fails:
            fails.clear()
            raise RuntimeError("on purpose")
        seen.extend(offset for (offset,) in rows(batch))
        if len(seen) > 500:
            has_enough.set()

    def start(**trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path))
        return writer.trigger(**trigger).start()

    with written_to(topics.servers, topic):
        with pytest.raises(PySparkException, match="on purpose"):
            start(**trigger).awaitTermination(100)
        # What has come since is much more than that first batch.
        produce(topics.servers, topic, numbered(2000))
        running = start(processingTime="0 seconds")
        assert has_enough.wait(100)
        running.stop()
    assert seen[0] >= 1000
    assert sorted(seen) == list(range(seen[0], seen[0] + len(seen)))


def test_a_broker_that_dies_in_the_middle_is_waited_for(spark: SparkSession, own_broker: Start) -> None:
    broker = own_broker()
    broker.keep_port()
    create(broker.address, "t")
    produce(broker.address, "t", numbered(20_000), config={"batch.num.messages": 100})
    options = {"subscribe": "t", "kafka.max.partition.fetch.bytes": "20000"}
    frame = Topics(spark, broker.address).load(options, "offset long")
    assert frame.rdd.getNumPartitions() == 1  # The plan is made.

    def restart() -> None:
        broker.kill()
        broker.start()

    killing = threading.Thread(target=restart)
    killing.start()
    assert frame.selectExpr("count(*)", "count(DISTINCT offset)").first() == (20_000, 20_000)
    killing.join()


def test_a_topic_that_is_deleted_under_a_stream_ends_it(topics: Topics, topic: str, tmp_path: Path) -> None:
    create(topics.servers, topic)
    stream = topics.spark.readStream.format("lamina").option("kafka.bootstrap.servers", topics.servers)
    writer = stream.option("subscribe", topic).load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    query.processAllAvailable()
    delete(topics.servers, topic)
    with pytest.raises(PySparkException, match=f"data loss: {topic}-0 cannot be found any more"):
        query.awaitTermination(300)


def test_an_idle_stream_sees_what_comes_and_new_partitions(topics: Topics, topic: str, tmp_path: Path) -> None:
    create(topics.servers, topic)
    seen = []
    stream = topics.spark.readStream.format("lamina").option("kafka.bootstrap.servers", topics.servers)
    frame = stream.option("subscribePattern", f"{topic}(-more)?").schema("topic string, offset long").load()
    writer = frame.writeStream.foreachBatch(lambda batch, _: seen.extend(rows(batch)))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    query.processAllAvailable()
    produce(topics.servers, topic, numbered(2))
    create(topics.servers, f"{topic}-more")
    produce(topics.servers, f"{topic}-more", numbered(1))
    query.processAllAvailable()
    query.stop()
    assert sorted(seen) == [(topic, 0), (topic, 1), (f"{topic}-more", 0)]


def test_a_corrupt_segment_is_told_and_a_query_fails(spark: SparkSession, own_broker: Start) -> None:
    broker = own_broker()
    create(broker.address, "t")
    produce(broker.address, "t", numbered(3))
    (segment,) = broker.log_dir.glob("t-0/*.log")
    with segment.open("r+b") as file:
        file.seek(80)
        file.write(b"\xff")
    for read_files, sentence in (("never", "t-0"), ("require", rf"{segment} is damaged at position 0, offset 0: ")):
        with pytest.raises(PySparkException, match=f"CorruptMessage: {sentence}"):
            Topics(spark, broker.address).load({"subscribe": "t", "readFiles": read_files}).count()


def test_a_broker_that_is_not_there_is_told(spark: SparkSession) -> None:
    options = {"subscribe": "t", "kafka.default.api.timeout.ms": "100"}
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1 cannot be reached .*tried in vain for 100 ms"):
        Topics(spark, "127.0.0.1:1").load(options).count()
