"""A source in Python that repeats one Arrow batch in memory: what no source of PySpark's API can beat.

Owns rows of the same columns and sizes as those of the topics that are measured beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_lamina.columns import row_schema

ROWS = 100_000
"""In a batch: about as many bytes as Lamina's source has in one."""
VALUE_BYTES = 100


class EmptySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        return row_schema(with_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        columns = [field.name for field in schema.fields]
        return EmptyReader(int(self.options["records"]), int(self.options["partitions"]), columns)


class EmptyReader(DataSourceReader):
    def __init__(self, records: int, partitions: int, columns: Sequence[str]) -> None:
        self._records, self._partitions, self._columns = records, partitions, columns

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = new_batch(partition.value, self._columns)
        left = self._records // self._partitions
        while left > 0:
            yield batch.slice(0, min(left, ROWS))
            left -= ROWS


def new_batch(partition: int, columns: Sequence[str]) -> pa.RecordBatch:
    values = np.random.default_rng(7).bytes(ROWS * VALUE_BYTES)
    ends = pa.py_buffer(np.arange(0, (ROWS + 1) * VALUE_BYTES, VALUE_BYTES, dtype=np.int32))
    whole = {
        "key": pa.array([b"key-%013d" % number for number in range(ROWS)], pa.binary()),
        "value": pa.Array.from_buffers(pa.binary(), ROWS, [None, ends, pa.py_buffer(values)]),
        "topic": pa.repeat("bench", ROWS),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), ROWS),
        "offset": pa.array(np.arange(ROWS)),
        "timestamp": pa.repeat(pa.scalar(0, pa.timestamp("us", tz="UTC")), ROWS),
        "timestampType": pa.repeat(pa.scalar(0, pa.int32()), ROWS),
    }
    return pa.RecordBatch.from_pydict({name: whole[name] for name in columns})
