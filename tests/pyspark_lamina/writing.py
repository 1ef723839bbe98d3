"""What a real Spark writes to topics: called by the tests that have started it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import lamina.arrow
from tests.arrow.topics import create

GUIDE = Path(__file__).parents[2] / "docs/spark-writing.md"
COMMITTED = {"isolation.level": "read_committed"}


def topics_are_written(spark: SparkSession, servers: str, directory: Path) -> None:
    writing = Writing(spark, servers, directory)
    _all_columns_are_written(writing)
    _a_named_write_is_done_once(writing)
    _a_stream_writes_each_batch_once(writing)
    _a_batch_that_is_done_again_writes_nothing(writing)


def wrong_writes_are_told(spark: SparkSession, servers: str, directory: Path) -> None:
    """And what the guide has them do is done."""
    writing = Writing(spark, servers, directory)
    _what_fails_is_told_in_one_sentence_and_nothing_is_seen(writing)
    _the_snippets_of_the_guide_run(writing)


class Writing:
    def __init__(self, spark: SparkSession, servers: str, directory: Path) -> None:
        self.spark, self.servers, self.directory = spark, servers, directory
        self.input = directory / "input"
        self.input.mkdir()
        self.checkpoint = directory / "checkpoint"

    def save(self, frame: DataFrame, **options: str) -> None:
        writer = frame.write.format("lamina").option("kafka.bootstrap.servers", self.servers)
        writer.options(**options).mode("append").save()

    def add_input(self, name: str, numbers: range) -> None:
        (self.input / f"{name}.json").write_text("\n".join(f'{{"id": {number}}}' for number in numbers))

    def stream(self, topic: str, **options: str) -> None:
        """All that is there and was not written yet."""
        frame = self.spark.readStream.schema("id long").json(str(self.input))
        writer = frame.selectExpr("string(id) AS value").writeStream.format("lamina").trigger(availableNow=True)
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", topic)
        query = writer.option("checkpointLocation", str(self.checkpoint)).options(**options).start()
        query.awaitTermination()

    def seen(self, topic: str, *columns: str) -> list[dict[str, Any]]:
        reader = lamina.arrow.read(topic, columns or ["value"], bootstrap_servers=self.servers, properties=COMMITTED)
        rows: list[dict[str, Any]] = reader.read_all().to_pylist()
        return rows

    def values(self, topic: str) -> list[int]:
        return sorted(int(row["value"]) for row in self.seen(topic))

    def until_seen(self, topic: str, wanted: list[int]) -> None:
        """Markers are written after the end of a transaction is confirmed."""
        for _ in range(1_000):
            if self.values(topic) == wanted:
                return
        assert self.values(topic) == wanted


def _all_columns_are_written(writing: Writing) -> None:
    create(writing.servers, "written", 3)
    frame = writing.spark.sql(
        "SELECT 'a' AS key, 'x' AS value, array(named_struct('key', 'h', 'value', CAST('1' AS BINARY))) AS headers, "
        "CAST(2 AS INT) AS partition, 'written' AS topic, 5 AS other UNION ALL "
        "SELECT 'a', 'y', NULL, NULL, 'written', 5 UNION ALL SELECT NULL, NULL, NULL, 0, 'written', 5"
    )
    writing.save(frame)
    assert sorted(writing.seen("written", "value", "key", "headers", "partition"), key=str) == [
        {"value": None, "key": None, "headers": None, "partition": 0},
        {"value": b"x", "key": b"a", "headers": [{"key": "h", "value": b"1"}], "partition": 2},
        # Java's default partitioner: murmur2 of "a", made positive, is 584,102,524.
        {"value": b"y", "key": b"a", "headers": None, "partition": 1},
    ]


def _a_named_write_is_done_once(writing: Writing) -> None:
    create(writing.servers, "named", 2)
    frame = writing.spark.range(100).selectExpr("CAST(string(id) AS BINARY) AS value")
    for _ in range(2):
        writing.save(frame, topic="named", queryId="named", batchId="1")
    writing.until_seen("named", list(range(100)))
    create(writing.servers, "other", 1)
    sentence = "batch 1 of query named was written by another writer, topic named; this one is topic other"
    with pytest.raises(PythonException, match=sentence):
        writing.save(frame, topic="other", queryId="named", batchId="1")
    assert writing.values("other") == []


def _a_stream_writes_each_batch_once(writing: Writing) -> None:
    create(writing.servers, "streamed", 2)
    for batch in range(3):
        writing.add_input(str(batch), range(10 * batch, 10 * batch + 10))
        writing.stream("streamed")
    writing.until_seen("streamed", list(range(30)))


def _a_batch_that_is_done_again_writes_nothing(writing: Writing) -> None:
    """The driver died before Spark wrote down that the batch is committed."""
    newest = max((writing.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    writing.add_input("more", range(30, 40))
    writing.stream("streamed")
    writing.until_seen("streamed", list(range(40)))


def _what_fails_is_told_in_one_sentence_and_nothing_is_seen(writing: Writing) -> None:
    create(writing.servers, "streamed", 2)
    numbers = writing.spark.range(10)
    wrong = "column value is of type bigint; it must be string or binary"
    with pytest.raises(AnalysisException, match=wrong):
        writing.save(numbers.selectExpr("id AS value"), topic="never")
    with pytest.raises(AnalysisException, match="no topic is given: set the option topic, or add a column topic"):
        writing.save(numbers.selectExpr("string(id) AS value"))
    with pytest.raises(PythonException, match="a row asks for partition 9 of topic streamed, which has 2 partitions"):
        writing.save(numbers.selectExpr("string(id) AS value", "9 AS partition"), topic="streamed")
    writing.add_input("wrong", range(40, 41))
    with pytest.raises(StreamingQueryException, match="the brokers do not allow transactions of 99999999 ms"):
        writing.stream("streamed", **{"kafka.transaction.timeout.ms": "99999999", "queryId": "other"})
    assert writing.values("streamed") == []


def _the_snippets_of_the_guide_run(writing: Writing) -> None:
    writing.add_input("snippet", range(41, 42))
    names = {
        "spark": writing.spark,
        "servers": writing.servers,
        "stream": writing.spark.readStream.schema("id long, name string").json(str(writing.input)),
        "checkpoint": str(writing.directory / "snippets"),
    }
    snippets = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(snippets) == 3
    _run(snippets, names)
    assert len(writing.seen("deliveries")) == 4
    assert len(writing.seen("names")) == 2


def _run(snippets: list[str], names: Mapping[str, Any]) -> None:
    shared = dict(names)
    for snippet in snippets:
        exec(snippet, shared)
