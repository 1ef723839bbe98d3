"""A query that goes on: ``spark.readStream``.

Owns the conversation with Spark's engine, which keeps the offsets in its checkpoint and asks here for the next ones.
One reader lives on the driver for as long as the query runs and asks the cluster; others are sent to tasks, and only
read. Options are looked at when they are first needed: PySpark loses what is raised while a reader is made.

The engine gives the end of a batch as the start of the next one once the batch is in its commit log: that is when
``commitGroup`` is told, also of the last batch before the query idles or, with Trigger.AvailableNow, ends. The engine's
own ``commit`` comes one batch later, and for the last one not at all.

Of a first batch, which may be empty, the checkpoint has the end alone, and the engine asks where it began: when it
looks for one, once more when it has found one, and again wherever the batch is done again. So that end says it, and
what it says goes before any other answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from pyspark_lamina.columns import Field, wanted_columns
from pyspark_lamina.lookup import Lookup
from pyspark_lamina.offsets import OffsetsJson, from_checkpoint, starts_in, to_json, topic_ids_in
from pyspark_lamina.options import SourceOptions, parse_options
from pyspark_lamina.ranges import as_tasks, read_rows
from pyspark_lamina.sentences import in_one_sentence
from pyspark_lamina.stream_progress import StreamProgress

_SOME_LIMIT = ReadMaxRows(1)
"""Spark's limits hold one number each, and ours are several: this one says that the options are to be looked at."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str], fields: Sequence[Field]) -> None:
        self._given = options
        self._fields = tuple(fields)
        self._lookup: Lookup | None = None
        self._progress: StreamProgress | None = None
        self._planned: tuple[object, list[InputPartition]] | None = None

    # On the driver

    def getDefaultReadLimit(self) -> ReadLimit:
        with in_one_sentence():
            wanted_columns(self._fields)
            return _SOME_LIMIT if self._options.trigger.are_given else ReadAllAvailable()

    def initialOffset(self) -> OffsetsJson:
        with in_one_sentence():
            return to_json(self._on_driver.initial(), self._on_driver.topic_ids)

    def prepareForTriggerAvailableNow(self) -> None:
        with in_one_sentence():
            self._on_driver.pin()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with in_one_sentence():
            progress, reached = self._on_driver, from_checkpoint(start)
            is_limited = not isinstance(limit, ReadAllAvailable)
            end = progress.next(reached, topic_ids_in(start), is_limited=is_limited)
        if reached == progress.begun_at and self._planned is None:
            return to_json(end, progress.topic_ids, progress.starts)
        # Offsets are compared as text: a checkpoint may hold them in another order than ours.
        return start if progress.is_idle else to_json(end, progress.topic_ids)

    def reportLatestOffset(self) -> OffsetsJson | None:
        latest = self._on_driver.latest
        return to_json(latest) if latest else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        if self._planned is None or self._planned[0] != (start, end):
            with in_one_sentence():
                end_ids = topic_ids_in(end)
                first = starts_in(end)
                starts, start_ids = (first, end_ids) if first else (from_checkpoint(start), topic_ids_in(start))
                ranges = self._on_driver.ranges(starts, from_checkpoint(end), start_ids, end_ids)
                cut = self._cluster.cut(ranges, self._options.bounds)
                tasks = as_tasks(cut, self._cluster.topics_told, self._options, is_stream=True)
            self._planned = ((start, end), tasks)
        return self._planned[1]

    def stop(self) -> None:
        if self._lookup is not None:
            self._lookup.close()
            self._lookup = self._progress = None

    @cached_property
    def _options(self) -> SourceOptions:
        return parse_options(self._given, is_stream=True)

    @property
    def _cluster(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(self._options)
        return self._lookup

    @property
    def _on_driver(self) -> StreamProgress:
        if self._progress is None:
            self._progress = StreamProgress(self._cluster, self._options)
        return self._progress

    # In a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with in_one_sentence():
            yield from read_rows(self._options.client, partition, wanted_columns(self._fields))
