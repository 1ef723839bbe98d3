"""A Spark that does what it is told, a line of JSON each: ``python -m bench.spark_program``.

The same program for every Spark that is measured: it needs PySpark alone, of 3.5 or of 4. Settings come first; then
each line asks for one thing and is answered by one, with the seconds that it took. Owns the queries. Must not know
which sources there are, nor what is compared.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession

LOOK_SECONDS = 0.005
WAIT_SECONDS = 60
SCANS = ("Scan", "BatchScan")
"""How Spark calls what a plan reads from."""
ROWS_METRIC = "number of output rows"
Answer = dict[str, Any]

QUERIES: Mapping[str, Callable[[DataFrame], Any]] = {
    "count": lambda frame: [frame.count()],
    "sum of the values' lengths": lambda frame: _first(frame.selectExpr("sum(length(value))")),
    "all columns to noop": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "offset and key": lambda frame: _first(frame.selectExpr("sum(length(key))", "max(offset)")),
}
"""Each answers with the columns of its only row; or with nothing."""


def _first(frame: DataFrame) -> list[Any]:
    row = frame.first()
    assert row is not None
    return list(row)


def _items(sequence: Any) -> list[Any]:
    """Of one that is Scala's."""
    return [sequence.apply(place) for place in range(sequence.size())]


class Program:
    def __init__(self, settings: Mapping[str, str], sources: Mapping[str, str]) -> None:
        builder: Any = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._spark: SparkSession = builder.getOrCreate()
        for module, name in sources.items():
            self._spark.dataSource.register(getattr(__import__(module, fromlist=[name]), name))
        self._last_execution = -1
        self._stream: Any = None
        self._last_batch = -1

    def read(self, source: str, options: Mapping[str, str], query: str, schema: str | None = None) -> Answer:
        reader = self._spark.read.format(source).options(**options)
        if schema is not None:
            reader = reader.schema(schema)
        self._rows_read()
        began = time.perf_counter()
        answer = QUERIES[query](reader.load())
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "answer": answer, "rows": self._rows_read()}

    def _rows_read(self) -> int:
        """That scans gave since this was last asked, as Spark counts them: nobody else counts what goes to nowhere."""
        session: Any = self._spark
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        store = session._jsparkSession.sharedState().statusStore()
        known = [execution.executionId() for execution in _items(store.executionsList())]
        rows = 0
        for number in (number for number in known if number > self._last_execution):
            values = store.executionMetrics(number)
            scans = [node for node in _items(store.planGraph(number).allNodes()) if node.name().startswith(SCANS)]
            metrics = [metric for scan in scans for metric in _items(scan.metrics()) if metric.name() == ROWS_METRIC]
            # An execution inside another one has scans that are counted there, and no values.
            shown = [values.get(metric.accumulatorId()) for metric in metrics]
            rows += sum(int(value.get().replace(",", "")) for value in shown if value.isDefined())
        self._last_execution = max(known, default=-1)
        return rows

    def write(self, source: str, options: Mapping[str, str], rows: str) -> Answer:
        frame = self._spark.read.parquet(rows)
        began = time.perf_counter()
        frame.write.format(source).options(**options).mode("append").save()
        return {"seconds": time.perf_counter() - began}

    def begin_stream(self, source: str, options: Mapping[str, str], checkpoint: str) -> Answer:
        """All columns of what is written from now on, to nowhere."""
        frame = self._spark.readStream.format(source).options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        self._stream, self._last_batch = writer.start(), -1
        self._stream.processAllAvailable()
        return {}

    def await_rows(self, count: int) -> Answer:
        """Until so many more rows were in batches: the longest of these, and when the last one was over."""
        deadline = time.monotonic() + WAIT_SECONDS
        taken_ms = 0
        while count > 0:
            batch = self._stream.lastProgress
            if batch is None or batch["batchId"] <= self._last_batch or not batch["numInputRows"]:
                if time.monotonic() > deadline or not self._stream.isActive:
                    raise TimeoutError(f"the stream did not take {count} rows: {self._stream.exception()}")
                time.sleep(LOOK_SECONDS)
                continue
            self._last_batch = batch["batchId"]
            count -= batch["numInputRows"]
            taken_ms = max(taken_ms, batch["durationMs"]["triggerExecution"])
        return {"batch_seconds": taken_ms / 1e3, "over_at": time.time()}

    def end_stream(self) -> Answer:
        self._stream.stop()
        return {}


def main() -> None:
    answers = _answers()
    orders = map(json.loads, sys.stdin)
    program = Program(**next(orders))
    print(json.dumps({}), file=answers, flush=True)
    for order in orders:
        try:
            answer = getattr(program, order.pop("do"))(**order)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _answers() -> TextIO:
    """What was standard output; what Java writes there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
