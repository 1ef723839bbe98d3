"""``format("lamina")`` in a real Spark, started once: everything that one session can show in short, in one test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tests.arrow.topics import create, numbered, produce, transact
from tests.broker.process import BrokerProcess
from tests.pyspark_lamina.session import spark_session


@pytest.mark.timeout(300)
def test_topics_are_dataframes(broker: BrokerProcess, tmp_path: Path) -> None:
    with spark_session(tmp_path / "spark") as spark:
        topics = Topics(spark, broker.address)
        _rows_have_kafkas_columns(topics)
        _a_schema_chooses_columns(topics)
        _a_view_is_made_in_sql(topics)
        _a_table_has_the_latest_of_each_key(topics)
        _what_is_wrong_is_told_first_and_in_one_sentence(topics)


class Topics:
    def __init__(self, spark: SparkSession, servers: str) -> None:
        self.spark = spark
        self.servers = servers

    def load(self, options: Mapping[str, str], schema: str | None = None) -> DataFrame:
        reader = self.spark.read.format("lamina").option("kafka.bootstrap.servers", self.servers).options(**options)
        return (reader if schema is None else reader.schema(schema)).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def _rows_have_kafkas_columns(topics: Topics) -> None:
    create(topics.servers, "in-spark", 2)
    headers = [("origin", b"test"), ("none", None)]
    produce(topics.servers, "in-spark", numbered(3), headers=headers, timestamps=[1_700_000_000_000] * 3)
    transact(topics.servers, "in-spark", [b"no"], commits=False, partition=1)
    options = {"subscribe": "in-spark", "includeHeaders": "true", "kafka.isolation.level": "read_committed"}
    frame = topics.load(options)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    told = frame.selectExpr("key", "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType", "headers")
    assert rows(told.orderBy("offset")) == [
        (b"k%d" % number, "in-spark", 0, number, 1_700_000_000_000, 0, headers) for number in range(3)
    ]
    assert frame.count() == 3
    # A DataFrame keeps its plan; filters of one use do not reach another.
    produce(topics.servers, "in-spark", numbered(2), partition=1)
    assert frame.filter("offset = 1").count() == 1
    assert frame.count() == 3
    assert topics.load(options).count() == 5
    assert topics.load({"subscribePattern": "in-.*", "endingOffsets": '{"in-spark":{"0":1,"1":0}}'}).count() == 1


def _a_schema_chooses_columns(topics: Topics) -> None:
    assigned = {"assign": '{"in-spark":[0]}', "maxRecordsPerPartition": "1"}
    frame = topics.load(assigned, "offset long not null, key binary")
    assert rows(frame.orderBy("offset")) == [(number, b"k%d" % number) for number in range(3)]
    assert frame.rdd.getNumPartitions() == 3
    assert topics.load({"assign": '{"in-spark":[0]}', "endingTimestamp": "1"}, "topic string").count() == 0


def _a_view_is_made_in_sql(topics: Topics) -> None:
    topics.spark.sql(
        "CREATE TEMPORARY VIEW lines (partition INT, value BINARY) USING lamina "
        f"OPTIONS ('kafka.bootstrap.servers' '{topics.servers}', subscribe 'in-spark', startingTimestamp '1')"
    )
    found = topics.spark.sql("SELECT CAST(value AS STRING) FROM lines WHERE partition = 0 ORDER BY value")
    assert rows(found) == [("v0",), ("v1",), ("v2",)]


def _a_table_has_the_latest_of_each_key(topics: Topics) -> None:
    create(topics.servers, "in-spark-table")
    produce(topics.servers, "in-spark-table", [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (None, b"4")])
    found = topics.load({"subscribe": "in-spark-table", "view": "table"}, "key binary, value binary, offset long")
    assert rows(found) == [(b"a", b"3", 2)]


def _what_is_wrong_is_told_first_and_in_one_sentence(topics: Topics) -> None:
    known: dict[str, str] = {"subscribe": "in-spark"}
    for options, schema, sentence in (
        ({"subscribe": "nowhere"}, None, "there is no topic 'nowhere'"),
        (known | {"startOffsets": "earliest"}, None, "there is no option 'startoffsets' for reading; startingOffsets"),
        (known | {"includeHeaders": "yes"}, None, "includeHeaders: 'yes' is neither true nor false"),
        (known, "key string", "column key is binary, not string; cast it after it was read"),
        (known | {"endingOffsets": '{"in-spark":{"0":99,"1":0}}'}, None, "data loss: in-spark-0 ends at offset 3"),
        (known | {"startingOffsets": '{"in-spark":{"0":1}}'}, None, "startingOffsets must name every partition"),
    ):
        with pytest.raises(AnalysisException) as raised:
            topics.load(options, schema).count()
        first, *_ = str(raised.value).splitlines()
        assert sentence in first
        assert "Traceback" not in str(raised.value)
