"""A query over what there is when it is planned: ``spark.read``.

Owns the plan of a DataFrame: Spark asks for it once, when the DataFrame is first used, and keeps it. A table whose end
nobody named goes on to where its partitions end when they are read. Filters are not
pushed down: PySpark shares a reader among the uses of a DataFrame, and would apply the filter of one use to all.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lamina.arrow.cutting import OffsetRange
from lamina.arrow.errors import ReadError
from lamina.arrow.losses import warn_of_nothing
from pyspark_lamina.columns import Field
from pyspark_lamina.lookup import Lookup
from pyspark_lamina.options import SourceOptions
from pyspark_lamina.planning import on_loss, partitions_going_on, ranges_within
from pyspark_lamina.ranges import as_tasks, read_rows
from pyspark_lamina.sentences import in_one_sentence


class TopicReader(DataSourceReader):
    def __init__(self, options: SourceOptions, columns: Sequence[Field]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[InputPartition]:
        with in_one_sentence(), Lookup(self._options) as lookup:
            return plan(lookup, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with in_one_sentence():
            yield from read_rows(self._options.client, partition, self._columns)


def plan(lookup: Lookup, options: SourceOptions) -> list[InputPartition]:
    topics = lookup.topics()
    if missing := options.selection.missing(topics):
        raise ReadError(f"there is no {missing[0]}")
    partitions = options.selection.select(topics.values())
    start_positions = options.start.positions(partitions)
    end_positions = options.end.positions(partitions)
    log_starts = lookup.starts(partitions)
    ends = lookup.offsets(end_positions)
    starts = lookup.offsets(start_positions)
    warn_of_nothing(starts, ends)
    high_watermarks = lookup.high_watermarks(partitions)
    tell = on_loss(fails=options.fails_on_data_loss)
    ranges = ranges_within(starts, ends, log_starts, high_watermarks, tell)
    going_on = partitions_going_on(end_positions) if options.is_table else set()
    # Also those that are empty now: what they hold when they are read is what counts.
    ranges |= {where: OffsetRange(starts[where], starts[where]) for where in going_on - set(ranges)}
    return as_tasks(lookup.cut(ranges, options.bounds), topics, options, is_stream=False, going_on=going_on)
