"""One range of a partition as a task of Spark: what is sent to an executor, and what it does.

Owns nothing but the passing on: `lamina.arrow` reads. Must not know how ranges were planned, nor ask a cluster.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from lamina.arrow.cluster import Topic
from lamina.arrow.cutting import OffsetRange
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.properties import ClientProperties
from lamina.arrow.reading import COLUMN_TYPES, read_range
from lamina.arrow.table_view import read_latest
from lamina.topic_partition import TopicPartition
from pyspark_lamina.columns import Field
from pyspark_lamina.options import SourceOptions


@dataclass(frozen=True)
class TopicRange(InputPartition):
    asked: RangeToFetch
    is_table: bool = False
    keeps_tombstones: bool = False


def as_tasks(
    cut: Mapping[TopicPartition, Sequence[OffsetRange]],
    topics: Mapping[str, Topic],
    options: SourceOptions,
    *,
    is_stream: bool,
    going_on: Collection[TopicPartition] = (),
) -> list[InputPartition]:
    strict = options.fails_on_data_loss
    return [
        TopicRange(
            RangeToFetch(
                *where,
                *one,
                # Who tolerates loss goes on with another topic of the same name; a stream does in its next batch.
                topic_id=topics[where[0]].topic_id if strict or is_stream else None,
                tolerates_loss=not strict,
                poll_timeout_ms=options.poll_timeout_ms,
                read_files=options.read_files,
                goes_on=where in going_on,
            ),
            is_table=options.is_table,
            keeps_tombstones=is_stream,
        )
        for where, ranges in cut.items()
        for one in ranges
    ]


def read_rows(
    client: ClientProperties, partition: InputPartition, columns: Sequence[Field]
) -> Iterator[pa.RecordBatch]:
    """Raises `DataLoss` or `KafkaError`."""
    if not isinstance(partition, TopicRange):
        return  # A query without any range: Spark makes a task of it all the same.
    names = [column.name for column in columns]
    # Spark compares the whole schema with its own, and may have been told that a column is never null.
    schema = pa.schema([pa.field(column.name, COLUMN_TYPES[column.name], column.may_be_null) for column in columns])
    if partition.is_table:
        batches = read_latest(client, partition.asked, names, keeps_tombstones=partition.keeps_tombstones)
    else:
        batches = read_range(client, partition.asked, names)
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
