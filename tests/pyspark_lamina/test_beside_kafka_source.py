"""Spark's own Kafka source beside ours, in one session: the same rows of the same topics, and one checkpoint for both.

Against Lamina and against a real Kafka (``make peers-spark``). Needs Maven once, to fetch Spark's own source and Kafka.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.arrow.topics import create, delete_head, make_compacted, numbered, produce, transact
from tests.broker.process import BrokerProcess
from tests.peers.kafka import Kafka, spark_source_jars
from tests.pyspark_lamina.reading import Rows, rows
from tests.pyspark_lamina.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

NOW_MS = 1_700_000_000_000
OFFICIAL, OURS = "kafka", "lamina"
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "message.max.bytes": "80000000",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = {"spark.driver.extraClassPath": spark_source_jars()}
    with spark_session(tmp_path_factory.mktemp("spark"), more=jars) as session:
        yield session


class Broker(NamedTuple):
    """One that compacts quickly, and takes large values."""

    servers: str
    log_dir: Path


@pytest.fixture(scope="module", params=["Lamina", "Kafka"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if request.param == "Kafka":
        with Kafka(tmp_path_factory.mktemp("kafka"), SETTINGS) as kafka:
            yield Broker(kafka.bootstrap, kafka.data_directory)
    else:
        given = (word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}"))
        with BrokerProcess(tmp_path_factory.mktemp("lamina"), *given) as broker:
            yield Broker(broker.address, broker.log_dir)


@pytest.fixture(scope="module")
def servers(either: Broker) -> str:
    return either.servers


@pytest.fixture(scope="module")
def topics(servers: str) -> str:
    """Of all kinds, in a few topics."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        config: dict[str, str | int] = {"compression.type": codec, "batch.num.messages": 30}
        create(servers, f"all-{codec}", 3, config={"retention.ms": "-1"})  # Its records are of 2023.
        for partition in (0, 2):
            times = [NOW_MS + 1000 * n for n in range(200)]
            headers = [("origin", b"test"), ("none", None), ("", b"")] if partition else None
            given = numbered(200)
            given[7:9] = [(None, b"without a key"), (b"without a value", None)]
            produce(
                servers, f"all-{codec}", given, partition=partition, timestamps=times, headers=headers, config=config
            )
    create(servers, "all-appended", config={"message.timestamp.type": "LogAppendTime"})
    produce(servers, "all-appended", numbered(5))
    create(servers, "all-transactions")
    for number in range(6):
        transact(servers, "all-transactions", [b"%d" % number] * 20, commits=number % 2 == 0)
    return servers


@pytest.fixture(scope="module")
def odd_topics(either: Broker) -> str:
    """Of gaps, of many batches, and of a large value."""
    servers = either.servers
    make_compacted(*either, "odd-compacted")
    create(servers, "odd-head", 2)
    produce(servers, "odd-head", numbered(1000), config={"batch.num.messages": 70})
    delete_head(servers, "odd-head", 0, before=333)
    create(servers, "odd-batches")
    produce(servers, "odd-batches", numbered(10_000), config={"batch.num.messages": 1, "linger.ms": 0})
    create(servers, "large")
    large = [(b"k", b"v"), (b"l", b"x" * (64 << 20)), (b"m", b"v")]
    produce(servers, "large", large, config={"message.max.bytes": 80_000_000})
    return servers


def load(spark: SparkSession, source: str, servers: str, **options: str) -> DataFrame:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", servers).options(**options)
    return reader.load().orderBy("topic", "partition", "offset")


def test_rows_are_the_same_over_gaps_and_ten_thousand_batches(spark: SparkSession, odd_topics: str) -> None:
    official, ours = (rows(load(spark, source, odd_topics, subscribePattern="odd-.*")) for source in (OFFICIAL, OURS))
    assert len(official) < 600 + 667 + 10_000
    assert ours == official


def test_a_value_of_64_mebibytes_is_the_same(spark: SparkSession, odd_topics: str) -> None:
    official, ours = (
        rows(load(spark, source, odd_topics, subscribe="large").selectExpr("offset", "length(value)", "md5(value)"))
        for source in (OFFICIAL, OURS)
    )
    assert [length for _, length, _ in official] == [1, 64 << 20, 1]
    assert ours == official


@pytest.mark.parametrize(
    "options",
    [
        {"includeHeaders": "true"},
        {"kafka.isolation.level": "read_committed"},
        {"minPartitions": "23"},
        {"maxRecordsPerPartition": "50"},
        {"startingTimestamp": str(NOW_MS + 90_000), "startingOffsetsByTimestampStrategy": "latest"},
        {"endingTimestamp": str(NOW_MS + 90_000)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_the_rows_are_the_same(spark: SparkSession, topics: str, options: dict[str, str]) -> None:
    frames = [load(spark, source, topics, subscribePattern="all-.*", **options) for source in (OFFICIAL, OURS)]
    assert frames[0].schema.simpleString() == frames[1].schema.simpleString()
    official, ours = (rows(frame) for frame in frames)
    assert len(official) > 500
    assert ours == official


def test_assigned_partitions_between_offsets_are_the_same(spark: SparkSession, topics: str) -> None:
    given = {
        "assign": '{"all-gzip":[0,1],"all-zstd":[2]}',
        "startingOffsets": '{"all-gzip":{"0":13,"1":-2},"all-zstd":{"2":-2}}',
        "endingOffsets": '{"all-gzip":{"0":150,"1":-1},"all-zstd":{"2":-1}}',
    }
    official, ours = (rows(load(spark, source, topics, **given)) for source in (OFFICIAL, OURS))
    assert len(ours) == 137 + 200
    assert ours == official


def test_a_checkpoint_goes_from_one_source_to_the_other_and_back(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    create(servers, topic, 2)
    seen: list[Rows] = []

    def run(source: str) -> None:
        stream = spark.readStream.format(source).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
        stream = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "30")
        collect: Callable[[DataFrame, int], None] = lambda frame, _: seen.append(rows(frame))  # noqa: E731
        writer = stream.load().select("partition", "offset").writeStream.foreachBatch(collect)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination(300)

    for number, source in enumerate((OFFICIAL, OURS, OFFICIAL, OURS)):
        for partition in range(2):
            produce(servers, topic, numbered(25, first=25 * number), partition=partition)
        run(source)
    assert sorted(row for batch in seen for row in batch) == [(p, n) for p in range(2) for n in range(100)]
