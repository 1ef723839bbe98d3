"""A client of Spark Connect in a process of its own: reads, streams and writes topics, and prints what it saw as JSON.

Everything is told by its arguments. It knows of Lamina only the format's name: the package belongs to the server.
At the end it imports ``from_registry``.
"""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession


def main(facts: dict[str, str]) -> None:
    spark = SparkSession.builder.remote(facts["connect"]).getOrCreate()
    servers = facts["servers"]
    frame = spark.read.format("lamina").option("kafka.bootstrap.servers", servers).option("subscribe", "orders")
    told = {
        "batch": rows(frame.schema("partition int, offset long, key binary").load()),
        "view": _view(spark, servers),
        "stream": _streamed(spark, facts),
        "error": _error(spark, servers),
    }
    _write(spark, servers)
    _write_stream(spark, facts)
    told["imported"] = [name for name in sys.modules if name.partition(".")[0] in ("lamina", "pyspark_lamina")]
    told["decoded"] = _decoded(spark, facts)
    print(json.dumps(told), flush=True)
    spark.stop()


def rows(frame: DataFrame) -> list[list[Any]]:
    return sorted(
        [one.decode() if isinstance(one, bytes | bytearray) else one for one in row] for row in frame.collect()
    )


def _view(spark: SparkSession, servers: str) -> list[list[Any]]:
    spark.sql(
        "CREATE TEMPORARY VIEW lines (value BINARY) USING lamina "
        f"OPTIONS ('kafka.bootstrap.servers' '{servers}', subscribe 'orders')"
    )
    return rows(spark.sql("SELECT CAST(value AS STRING) FROM lines"))


def _streamed(spark: SparkSession, facts: dict[str, str]) -> list[list[Any]]:
    stream = spark.readStream.format("lamina").option("kafka.bootstrap.servers", facts["servers"])
    stream = stream.option("subscribe", "orders").option("startingOffsets", "earliest")
    writer = stream.option("maxOffsetsPerTrigger", "4").schema("partition int, offset long").load().writeStream
    writer = writer.format("memory").queryName("seen").option("checkpointLocation", facts["read_checkpoint"])
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return rows(spark.table("seen"))


def _error(spark: SparkSession, servers: str) -> str:
    try:
        spark.read.format("lamina").option("kafka.bootstrap.servers", servers).option(
            "subscribe", "nowhere"
        ).load().count()
    except PySparkException as error:
        return str(error).splitlines()[0]
    return ""


def _write(spark: SparkSession, servers: str) -> None:
    """Twice under one name."""
    for _ in range(2):
        writer = spark.range(10).selectExpr("string(id) AS value").write.format("lamina").mode("append")
        writer = writer.option("kafka.bootstrap.servers", servers).option("topic", "written")
        writer.option("queryId", "nightly").option("batchId", "1").save()


def _write_stream(spark: SparkSession, facts: dict[str, str]) -> None:
    """From one topic to another, in several batches."""
    stream = spark.readStream.format("lamina").option("kafka.bootstrap.servers", facts["servers"])
    stream = stream.option("subscribe", "orders").option("startingOffsets", "earliest")
    frame = stream.option("maxOffsetsPerTrigger", "4").load().select("key", "value")
    writer = frame.writeStream.format("lamina").option("kafka.bootstrap.servers", facts["servers"])
    writer = writer.option("topic", "copied").option("checkpointLocation", facts["write_checkpoint"])
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def _decoded(spark: SparkSession, facts: dict[str, str]) -> list[list[Any]]:
    from pyspark_lamina.functions import from_registry

    prices = (
        spark.read.format("lamina").option("kafka.bootstrap.servers", facts["servers"]).option("subscribe", "prices")
    )
    decoded = from_registry("value", facts["registry"], subject="prices-value").alias("decoded")
    return rows(prices.load().select(decoded).select("decoded.value.cents", "decoded.error"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
