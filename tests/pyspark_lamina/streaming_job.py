"""A query in a process of its own, for whoever kills it: files of numbers to a topic, a file in each batch.

It ends when all files are written. With ``stumbles`` some attempts are slow, or fail; a shuffle lies before the sink.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.functions import udf

from lamina.clocks import pause
from tests.pyspark_lamina.session import spark_session

BEGUN = "begun"
"""Said when the query runs."""


def stumble(value: str) -> str:
    """Some rows of first attempts fail, or take so long that Spark begins a second attempt beside the first."""
    context = TaskContext.get()
    assert context is not None
    batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
    if context.attemptNumber() == 0 and context.partitionId() == 0 and int(value) % 50 == 7:
        if batch % 3 == 1:
            raise RuntimeError("this attempt was to fail")
        if batch % 3 == 2:
            pause(1)
    return value


def main(facts: dict[str, Any]) -> None:
    directory = Path(facts["directory"])
    with spark_session(directory, facts["master"], facts["conf"]) as spark:
        frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", "1").json(facts["input"])
        frame = frame.selectExpr("string(id) AS value").repartition(2)
        if facts["stumbles"]:
            frame = frame.select(udf(stumble, "string", useArrow=False)("value").alias("value"))
        writer = frame.writeStream.format("lamina").option("kafka.bootstrap.servers", facts["servers"])
        writer = writer.option("topic", facts["topic"]).option("checkpointLocation", facts["checkpoint"])
        query = writer.trigger(availableNow=True).start()
        print(BEGUN, flush=True)
        query.awaitTermination()


if __name__ == "__main__":
    # Executors find what they run by the name of its module.
    from tests.pyspark_lamina import streaming_job

    streaming_job.main(json.loads(sys.argv[1]))
