"""``format("lamina")`` in a real Spark, started once for each test: everything that one session can show in short."""

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import AnalysisException

from tests.arrow.topics import create, numbered, produce, transact
from tests.broker.process import BrokerProcess
from tests.pyspark_lamina.checkpoints import write_official_checkpoint
from tests.pyspark_lamina.reading import Topics, rows
from tests.pyspark_lamina.registry import values_are_decoded
from tests.pyspark_lamina.session import LOADED_WORKERS, spark_session
from tests.pyspark_lamina.writing import topics_are_written, wrong_writes_are_told
from tests.schema_registry.registry import avro, framed, serving

GUIDE = Path(__file__).parents[2] / "docs/spark.md"
PRICE = {"type": "record", "name": "Price", "fields": [{"name": "cents", "type": "long"}]}
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(300)
def test_topics_are_dataframes(own_broker: Callable[[], BrokerProcess], tmp_path: Path) -> None:
    broker = own_broker()
    with spark_session(tmp_path / "spark", more=LOADED_WORKERS) as spark:
        topics = Topics(spark, broker.address)
        _rows_have_kafkas_columns(topics)
        _a_schema_chooses_columns(topics)
        _tasks_that_see_the_files_read_them(topics)
        _a_view_is_made_in_sql(topics)
        _a_table_has_the_latest_of_each_key(topics)
        _a_stream_goes_on_from_a_checkpoint_of_sparks_own_source(topics, tmp_path / "official")
        _a_stream_of_a_table_gives_changes(topics, tmp_path / "changes")
        with pytest.raises(AnalysisException, match="there is no topic 'nowhere'"):
            topics.load({"subscribe": "nowhere"}).count()
        topics_are_written(spark, broker.address, tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_guides_run_and_what_is_wrong_is_told(own_broker: Callable[[], BrokerProcess], tmp_path: Path) -> None:
    broker = own_broker()
    with spark_session(tmp_path / "spark") as spark:
        topics = Topics(spark, broker.address)
        _the_examples_of_the_guide_run(topics, tmp_path / "guide")
        _what_is_wrong_is_told_first_and_in_one_sentence(topics)
        wrong_writes_are_told(spark, broker.address, tmp_path)
        values_are_decoded(topics)


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


def _tasks_that_see_the_files_read_them(topics: Topics) -> None:
    options = {"subscribe": "in-spark", "kafka.isolation.level": "read_committed"}
    by_fetch, from_files = (
        rows(topics.load({**options, "readFiles": how}).orderBy("partition", "offset")) for how in ("never", "require")
    )
    assert by_fetch == from_files
    assert len(by_fetch) == 5


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
    produce(topics.servers, "in-spark-table", [(b"c", b"5")])
    assert rows(found) == [(b"a", b"3", 2), (b"c", b"5", 5)]
    named = {"subscribe": "in-spark-table", "view": "table", "endingOffsets": '{"in-spark-table":{"0":2}}'}
    assert rows(topics.load(named, "key binary, value binary")) == [(b"a", b"1"), (b"b", b"2")]


def _a_stream_goes_on_from_a_checkpoint_of_sparks_own_source(topics: Topics, checkpoint: Path) -> None:
    # As that writes it: its batch 0 had gone from offset 0 to 1 and to 0 of the two partitions.
    write_official_checkpoint(checkpoint, [{"in-spark": {"1": 0, "0": 1}}])
    options = {"subscribe": "in-spark", "maxOffsetsPerTrigger": "4", "startingOffsets": "latest"}
    options |= {"kafka.isolation.level": "read_committed", "commitGroup": "in-spark-lag"}
    batches, query = topics.stream(options, checkpoint, "partition int, offset long")
    # Offsets 0 and 1 of the second partition are an aborted transaction.
    assert [sorted(batch) for batch in batches] == [[(0, 1)], [(0, 2), (1, 2), (1, 3)]]
    last = json.loads(query.lastProgress.json)["sources"][0]  # type: ignore[union-attr]
    end = {"in-spark": {"0": 3, "1": 4}}
    # Beside the offsets there is the topic's id, where those who read offsets find none.
    (id_key,) = last["endOffset"].keys() - end.keys()
    assert id_key.startswith("in-spark@")
    assert (last["endOffset"], last["latestOffset"]) == (end | {id_key: {}}, end)
    assert last["startOffset"]["in-spark"]["0"] == 2
    consumer = Consumer({"bootstrap.servers": topics.servers, "group.id": "in-spark-lag"})
    committed = consumer.committed([TopicPartition("in-spark", partition) for partition in range(2)], 30)
    assert [one.offset for one in committed] == [3, 4]
    produce(topics.servers, "in-spark", numbered(1))
    assert topics.stream(options, checkpoint, "partition int, offset long")[0] == [[(0, 3)]]


def _a_stream_of_a_table_gives_changes(topics: Topics, checkpoint: Path) -> None:
    options = {"subscribe": "in-spark-table", "view": "table", "startingOffsets": "earliest"}
    batches, _ = topics.stream(options, checkpoint, "offset long, key binary, value binary")
    assert batches == [[(2, b"a", b"3"), (3, b"b", None), (5, b"c", b"5")]]


def _what_is_wrong_is_told_first_and_in_one_sentence(topics: Topics) -> None:
    create(topics.servers, "in-spark", 2)
    produce(topics.servers, "in-spark", numbered(4))
    known: dict[str, str] = {"subscribe": "in-spark"}
    for options, schema, sentence in (
        ({"subscribe": "nowhere"}, None, "there is no topic 'nowhere'"),
        (known | {"startOffsets": "earliest"}, None, "there is no option 'startoffsets' for reading; startingOffsets"),
        (known | {"includeHeaders": "yes"}, None, "includeHeaders: 'yes' is neither true nor false"),
        (known, "key string", "column key is binary, not string; cast it after it was read"),
        (known | {"endingOffsets": '{"in-spark":{"0":99,"1":0}}'}, None, "data loss: in-spark-0 ends at offset 4"),
        (known | {"startingOffsets": '{"in-spark":{"0":1}}'}, None, "startingOffsets must name every partition"),
    ):
        with pytest.raises(AnalysisException) as raised:
            topics.load(options, schema).count()
        first, *_ = str(raised.value).splitlines()
        assert sentence in first
        assert "Traceback" not in str(raised.value)


def _the_examples_of_the_guide_run(topics: Topics, checkpoints: Path) -> None:
    create(topics.servers, "orders", 2)
    create(topics.servers, "customers")
    produce(topics.servers, "orders", numbered(3))
    produce(topics.servers, "customers", [(b"ann", b"Rome"), (b"bob", b"Oslo"), (b"ann", b"Bern"), (b"bob", None)])
    create(topics.servers, "prices")
    names = {"spark": topics.spark, "servers": topics.servers, "checkpoints": str(checkpoints)}
    printed = io.StringIO()
    with serving() as registry, redirect_stdout(printed):
        number = registry.add(PRICE, subject="prices-value")
        price = framed(number, avro(PRICE, {"cents": 1250}))
        produce(topics.servers, "prices", [(b"a", price), (b"b", b"plain")])
        names["registry"] = registry.url
        for example in EXAMPLE.findall(GUIDE.read_text()):
            exec(example, names)
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in printed.getvalue().splitlines() if "|" in line
    ]
    assert [line for line in lines if line[0] in ("ann", "bob")] == [["ann", "Bern"]]
    assert ["0", "1250"] in lines
    assert ["1", "it begins with byte 112, not with a zero byte and the id of a schema"] in lines
    assert ["3"] in lines
