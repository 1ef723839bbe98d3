"""Arrow record batches from record batches: what readers of topics are given.

Owns the columns' types. Topic and partition are constants that the reader adds. The only module here that knows
pyarrow.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lamina.records.batch import Buffer
from lamina.records.columns import filling as f
from lamina.records.columns.buffers import Filled
from lamina.records.columns.reading import ColumnReader

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(_HEADER),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "sequence": pa.int32(),
    "leader_epoch": pa.int32(),
    "batch_position": pa.int64(),
}
"""By column. A record without headers has null in their place, as Spark's own Kafka source gives it; a time that does
not fit 64 bits in microseconds is null too."""

_NUMBERS = {
    "offset": f.OFFSETS,
    "timestamp": f.TIMESTAMPS,
    "timestampType": f.TIMESTAMP_TYPES,
    "producer_id": f.PRODUCER_IDS,
    "producer_epoch": f.PRODUCER_EPOCHS,
    "sequence": f.SEQUENCES,
    "leader_epoch": f.LEADER_EPOCHS,
    "batch_position": f.BATCH_POSITIONS,
}

MIN_BATCH_BYTES, MAX_BATCH_BYTES = 1024, 2**30


class RecordBatches(Iterator[pa.RecordBatch]):
    """The batches, one at a time; and once there are no more, ``next_offset``, where what follows the buffer begins."""

    def __init__(self, reader: ColumnReader, columns: Sequence[str]) -> None:
        self._reader = reader
        self._columns = columns
        self._schema = schema_of(columns)
        self._filled = reader.read()

    def __next__(self) -> pa.RecordBatch:
        filled = next(self._filled)
        if "batch_position" in self._columns and self._reader.first_position:
            filled.arrays[f.BATCH_POSITIONS] += self._reader.first_position
        return pa.RecordBatch.from_arrays([_array(column, filled) for column in self._columns], schema=self._schema)

    @property
    def next_offset(self) -> int:
        return self._reader.next_offset


def schema_of(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(column, TYPES[column]) for column in columns])


def record_batches(
    data: Buffer,
    *,
    columns: Sequence[str],
    start_offset: int,
    end_offset: int,
    aborted: Sequence[tuple[int, int]] | None,
    max_batch_bytes: int,
    name: str,
    first_position: int = 0,
) -> RecordBatches:
    """The records in ``[start_offset, end_offset)`` of a buffer of batches; what is cut off at its end is left out.

    Control batches are never given. With ``aborted``, (producer id, first offset) of the aborted transactions that
    reach into the buffer, their batches are left out too (read_committed). CRCs are checked. ``name`` is what a person
    calls the buffer, or the file of which it is a part that begins at ``first_position``: :class:`CorruptMessage` is
    one sentence with it, a position and an offset. ``columns`` is at least one of :data:`TYPES`.
    """
    if not columns or (unknown := [column for column in columns if column not in TYPES]):
        raise ValueError(f"no such columns: {', '.join(unknown)}" if columns else "no columns were asked for")
    limit_bytes = min(max(max_batch_bytes, MIN_BATCH_BYTES), MAX_BATCH_BYTES)
    return RecordBatches(
        ColumnReader(data, columns, (start_offset, end_offset), aborted, limit_bytes, name, first_position),
        tuple(columns),
    )


def _array(column: str, filled: Filled) -> pa.Array:
    arrays, tally, kind = filled.arrays, filled.tally, TYPES[column]
    match column:
        case "key":
            return _binary(filled, kind, (f.KEY_ENDS, f.KEY_BITS, f.KEYS), filled.count, tally[f.NULL_KEYS])
        case "value":
            return _binary(filled, kind, (f.VALUE_ENDS, f.VALUE_BITS, f.VALUES), filled.count, tally[f.NULL_VALUES])
        case "headers":
            return _headers(filled)
    numbers = arrays[_NUMBERS[column]]
    if column == "timestamp" and tally[f.IMPOSSIBLE_TIMESTAMPS]:
        return pa.array(numbers, pa.int64(), mask=numbers == f.NO_TIMESTAMP_US).cast(kind)
    return pa.Array.from_buffers(kind, filled.count, [None, pa.py_buffer(numbers)])


def _binary(filled: Filled, kind: pa.DataType, numbers: tuple[int, int, int], count: int, nulls: int) -> pa.Array:
    ends, bits, data = (pa.py_buffer(filled.arrays[number]) for number in numbers)
    return pa.Array.from_buffers(kind, count, [bits if nulls else None, ends, data], nulls)


def _headers(filled: Filled) -> pa.Array:
    tally, count = filled.tally, filled.tally[f.HEADERS_USED]
    values = (f.HEADER_VALUE_ENDS, f.HEADER_VALUE_BITS, f.HEADER_VALUES)
    fields = [_header_keys(filled), _binary(filled, pa.binary(), values, count, tally[f.NULL_HEADER_VALUES])]
    structs = pa.StructArray.from_arrays(fields, fields=list(_HEADER))
    ends, bits = pa.py_buffer(filled.arrays[f.LIST_ENDS]), pa.py_buffer(filled.arrays[f.LIST_BITS])
    nulls = tally[f.NULL_LISTS]
    return pa.Array.from_buffers(
        TYPES["headers"], filled.count, [bits if nulls else None, ends], nulls, children=[structs]
    )


def _header_keys(filled: Filled) -> pa.Array:
    """UTF-8 by agreement: what is none becomes what Java's readers make of it, U+FFFD."""
    ends, keys = pa.py_buffer(filled.arrays[f.HEADER_KEY_ENDS]), pa.py_buffer(filled.arrays[f.HEADER_KEYS])
    count = filled.tally[f.HEADERS_USED]
    if filled.tally[f.HEADER_KEY_BYTES_SEEN] < 0x80:
        return pa.Array.from_buffers(pa.string(), count, [None, ends, keys])
    found = pa.Array.from_buffers(pa.binary(), count, [None, ends, keys])
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode(errors="replace") for key in found.to_pylist()], pa.string())
