"""Topics of a broker as a session sees them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

Rows = list[tuple[Any, ...]]


class Topics:
    def __init__(self, spark: SparkSession, servers: str) -> None:
        self.spark = spark
        self.servers = servers

    def load(self, options: Mapping[str, str], schema: str | None = None) -> DataFrame:
        reader = self.spark.read.format("lamina").option("kafka.bootstrap.servers", self.servers).options(**options)
        return (reader if schema is None else reader.schema(schema)).load()

    def stream(self, options: Mapping[str, str], checkpoint: Path, schema: str) -> tuple[list[Rows], StreamingQuery]:
        """The batches that there are now, and the query, which has ended."""
        reader = self.spark.readStream.format("lamina").option("kafka.bootstrap.servers", self.servers)
        batches: list[Rows] = []
        writer = reader.options(**options).schema(schema).load().writeStream
        writer = writer.foreachBatch(lambda frame, _: batches.append(sorted(rows(frame))))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination(300)
        return batches, query


def rows(frame: DataFrame) -> Rows:
    return [tuple(row) for row in frame.collect()]
