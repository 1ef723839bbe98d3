"""The latest record of each key in a range, as a table would show it.

Owns the two passes: keys and offsets alone tell which records are the latest, then these are read; and that none of
these is missed in silence. What was compacted away before the first pass came by is missed only in a range that ends
where it was told to: no request of Kafka tells a key that was changed beyond the end from one that is new. A range that
goes on ends with what nothing can have replaced yet: with one Fetch response that reaches the high watermark which it
tells, or the last stable offset, beyond which the cleaner knows nothing either. Keys are compared by their bytes.
Memory grows with the keys of the range, not with its records. Records without a key belong to no row. Must not know
other partitions: a key is the partitioner's to keep in one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lamina.arrow.losses import Loss, fail, warn
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.properties import ClientProperties
from lamina.arrow.reading import DEFAULT_BATCH_BYTES, read_range, schema_of

Offsets = npt.NDArray[np.int64]

_LEAST_ROWS_TO_MERGE = 1 << 20
_ADVICE = "; read it again, or keep records longer from compaction: the topic's min.compaction.lag.ms"


def read_latest(
    properties: ClientProperties,
    asked: RangeToFetch,
    columns: Sequence[str],
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
    *,
    keeps_tombstones: bool = False,
) -> Iterator[pa.RecordBatch]:
    """In the order of offsets. A tombstone is a key without a row, unless they are kept, with their null value.

    Raises `DataLoss` where records were compacted away between the passes. Not for changes, tombstones and all: there,
    the later record is itself a change, which comes with the range that it is in.
    """
    schema = schema_of(columns)
    latest = latest_offsets(read_range(properties, asked, ["key", "offset"], max_batch_bytes))
    if not len(latest):
        return
    needed = list(dict.fromkeys([*columns, "offset", *([] if keeps_tombstones else ["value"])]))
    again = replace(asked, end=int(latest[-1]) + 1, goes_on=False)
    missing = len(latest)
    for batch in read_range(properties, again, needed, max_batch_bytes):
        kept = batch.filter(_is_among(batch.column("offset").to_numpy(), latest))
        missing -= kept.num_rows
        if not keeps_tombstones:
            kept = kept.filter(kept.column("value").is_valid())
        if kept.num_rows:
            yield pa.RecordBatch.from_arrays([kept.column(name) for name in columns], schema=schema)
    if missing and not keeps_tombstones:
        told = f"{asked.name} was compacted while it was read: {missing} of {len(latest)} latest records were gone"
        loss = Loss(asked.name, told, asked.start, again.end, missing)
        if asked.tolerates_loss:
            warn(loss)
        else:
            fail(loss, _ADVICE)


def latest_offsets(batches: Iterator[pa.RecordBatch]) -> Offsets:
    """Sorted; of batches with ``key`` and ``offset``."""
    merged: pa.Table | None = None
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        # As much again as is known: every key is merged a bounded number of times on average.
        if rows >= max(_LEAST_ROWS_TO_MERGE, 0 if merged is None else merged.num_rows):
            merged, pending, rows = _merge(merged, pending), [], 0
    if pending:
        merged = _merge(merged, pending)
    return np.empty(0, np.int64) if merged is None else np.sort(merged.column("offset").to_numpy())


def _merge(merged: pa.Table | None, batches: list[pa.RecordBatch]) -> pa.Table:
    # Keys of more than 2 GiB in all need wide positions.
    found = pa.Table.from_batches(batches).cast(pa.schema([("key", pa.large_binary()), ("offset", pa.int64())]))
    found = found.filter(found.column("key").is_valid())
    both = found if merged is None else pa.concat_tables([merged, found])
    newest = both.group_by("key", use_threads=False).aggregate([("offset", "max")])
    return pa.table({"key": newest.column("key"), "offset": newest.column("offset_max")})


def _is_among(offsets: Offsets, latest: Offsets) -> pa.Array:
    at = np.minimum(np.searchsorted(latest, offsets), len(latest) - 1)
    return pa.array(latest[at] == offsets)
