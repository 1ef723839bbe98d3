"""Topics in Spark, read by our source and by Spark's own, in one session and from one broker: ``make bench-spark``.

Each row is a query that both run in turns, with the median, the least and the most of the rounds; beside it a source in
Python that only repeats one Arrow batch in memory, which no such source can beat. Owns the rows. Must not know how a
source reads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table

from bench.librdkafka import PRODUCER, create_topic
from bench.rounds import interleaved
from pyspark_lamina.columns import row_schema
from tests.broker.process import BrokerProcess
from tests.peers.kafka import Kafka, KafkaFailedError, KafkaMissingError, spark_source_jars
from tests.pyspark_lamina.session import spark_session

RECORDS, PARTITIONS = 10_000_000, 4
KEYS, VALUE_BYTES = 2_000_000, 100
ROUNDS = 5
OURS, OFFICIAL, CEILING = "lamina", "kafka", "empty"
CONTESTANTS = (OURS, OFFICIAL, CEILING)
AS_DELIVERED = {"spark.sql.codegen.wholeStage": "true", "spark.driver.memory": "2g"}
WHOLE_JAVA = ("-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC")
"""What sessions of tests leave out."""
FEW_COLUMNS = "offset long, key binary"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    run: Callable[[DataFrame], object]
    bar: float
    """How many times the records per second of Spark's own source are asked for."""
    schema: str | None = None
    """For the sources that take one."""


ROWS = (
    Row("count", lambda frame: frame.count(), 1.5),
    Row("sum of the values' lengths", lambda frame: frame.selectExpr("sum(length(value))").first(), 1.5),
    Row("all columns to noop", lambda frame: frame.write.format("noop").mode("overwrite").save(), 1.5),
    Row("offset and key alone", lambda frame: frame.selectExpr("count(key)", "max(offset)").first(), 4.0, FEW_COLUMNS),
)


class EmptySource(DataSource):
    """The same rows from nowhere."""

    @classmethod
    def name(cls) -> str:
        return CEILING

    def schema(self) -> str:
        return row_schema(with_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _EmptyReader(int(self.options["records"]), [field.name for field in schema.fields])


class _EmptyReader(DataSourceReader):
    def __init__(self, records: int, columns: Sequence[str]) -> None:
        self._records, self._columns = records, columns

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        left, size = self._records // PARTITIONS, 100_000
        whole = {
            "key": pa.array([b"key-%013d" % number for number in range(size)], pa.binary()),
            "value": pa.array([b"v" * VALUE_BYTES] * size, pa.binary()),
            "topic": pa.repeat("bench", size),
            "partition": pa.repeat(pa.scalar(partition.value, pa.int32()), size),
            "offset": pa.array(range(size), pa.int64()),
            "timestamp": pa.repeat(pa.scalar(0, pa.timestamp("us", tz="UTC")), size),
            "timestampType": pa.repeat(pa.scalar(0, pa.int32()), size),
        }
        batch = pa.RecordBatch.from_pydict({name: whole[name] for name in self._columns})
        while left > 0:
            yield batch.slice(0, min(left, size))
            left -= size


def fill(servers: str, topic: str, records: int, codec: str) -> None:
    from confluent_kafka import Producer

    create_topic(servers, topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, **PRODUCER, "compression.type": codec})
    value = os.urandom(VALUE_BYTES // 2).hex().encode()
    for number in range(records):
        producer.produce(topic, value, b"key-%013d" % (number % KEYS), partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise OSError(f"{topic} could not be filled")


def load(spark: SparkSession, source: str, servers: str, topic: str, records: int, schema: str | None) -> DataFrame:
    reader = spark.read.format(source)
    if source == CEILING:
        reader = reader.option("records", records)
    else:
        reader = reader.option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    if schema is not None and source != OFFICIAL:
        reader = reader.schema(schema)
    return reader.load()


def measure(
    spark: SparkSession, servers: str, topic: str, records: int, rounds: int
) -> Iterator[tuple[Row, dict[str, list[float]]]]:
    for row in ROWS:
        seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
        # One round more, which is not counted: Java is warm afterwards.
        for number, name in interleaved(CONTESTANTS, rounds + 1):
            frame = load(spark, name, servers, topic, records, row.schema)
            began = time.perf_counter()
            row.run(frame)
            if number:
                seconds[name].append(time.perf_counter() - began)
        yield row, seconds


def show(found: Sequence[tuple[Row, dict[str, list[float]]]], records: int) -> Table:
    table = Table("query", "Spark's own, M/s", "Lamina, M/s", "ratio", "bar", "ceiling, M/s")
    for row, seconds in found:
        rates = {name: [records / one / 1e6 for one in all_of] for name, all_of in seconds.items()}
        ratios = [ours / official for ours, official in zip(rates[OURS], rates[OFFICIAL], strict=True)]
        table.add_row(
            row.name,
            *(
                f"{median(rates[name]):.2f} ({min(rates[name]):.2f}-{max(rates[name]):.2f})"
                for name in (OFFICIAL, OURS)
            ),
            f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
            f"{row.bar} {'met' if median(ratios) >= row.bar else 'missed'}",
            f"{median(rates[CEILING]):.2f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=RECORDS, help=f"how many ({RECORDS:,})")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--codec", default="none", choices=["none", "gzip", "snappy", "lz4", "zstd"])
    parser.add_argument("--kafka", action="store_true", help="read from a real Kafka instead of a Lamina broker")
    parser.add_argument("--json", action="store_true", help="print all seconds as JSON")
    given = parser.parse_args()
    try:
        with ExitStack() as stack:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lamina-bench-")))
            if given.kafka:
                servers = stack.enter_context(Kafka(root / "kafka")).bootstrap
            else:
                servers = stack.enter_context(BrokerProcess(root / "data")).address
            fill(servers, "bench", given.records, given.codec)
            jars = {"spark.driver.extraClassPath": spark_source_jars()}
            spark = stack.enter_context(spark_session(root / "spark", more=jars | AS_DELIVERED, java=WHOLE_JAVA))
            spark.dataSource.register(EmptySource)
            found = list(measure(spark, servers, "bench", given.records, given.rounds))
    except (KafkaMissingError, KafkaFailedError, OSError) as error:
        sys.exit(str(error))
    if given.json:
        print(json.dumps({row.name: seconds for row, seconds in found}))
    else:
        Console(width=120).print(show(found, given.records))


if __name__ == "__main__":
    main()
