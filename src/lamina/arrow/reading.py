"""One range of one partition as Arrow batches, in the process that wants them.

Owns the columns that there are, and that a reader holds at most three fetched chunks and one Arrow batch. Fetching goes
on, on a thread, while batches are made. Must not know who cut the range.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lamina.arrow.errors import ReadError
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.properties import ClientProperties
from lamina.arrow.sourcing import read_chunks
from lamina.records.columns.arrow import TYPES, record_batches

DEFAULT_BATCH_BYTES = 16 * 1024 * 1024

_CONSTANT_TYPES = {"topic": pa.string(), "partition": pa.int32()}
COLUMN_TYPES = {**TYPES, **_CONSTANT_TYPES}
_CHEAPEST = "offset"
_NO_END = 2**63 - 1


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """Raises `ReadError` for a name that is no column, or none at all."""
    unknown = [name for name in columns if name not in COLUMN_TYPES]
    if unknown or not columns:
        told = f"there is no column {unknown[0]!r}" if unknown else "name at least one column"
        raise ReadError(f"{told}; there are {', '.join(COLUMN_TYPES)}")
    return pa.schema([pa.field(name, COLUMN_TYPES[name]) for name in columns])


def read_range(
    properties: ClientProperties,
    asked: RangeToFetch,
    columns: Sequence[str],
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Raises `DataLoss` or `KafkaError`. Batches without a record are left out."""
    schema = schema_of(columns)
    stored = [name for name in columns if name not in _CONSTANT_TYPES] or [_CHEAPEST]
    for chunk in read_chunks(properties, asked):
        for batch in record_batches(
            chunk.records,
            columns=stored,
            start_offset=chunk.start,
            end_offset=_NO_END if asked.goes_on else asked.end,
            aborted=chunk.aborted,
            max_batch_bytes=max_batch_bytes,
            name=chunk.name,
            first_position=chunk.position,
        ):
            if batch.num_rows:
                yield _with_constants(batch, schema, asked)


def _with_constants(batch: pa.RecordBatch, schema: pa.Schema, asked: RangeToFetch) -> pa.RecordBatch:
    constants = {"topic": asked.topic, "partition": asked.partition}
    arrays = [
        pa.repeat(pa.scalar(constants[field.name], field.type), batch.num_rows)
        if field.name in constants
        else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
