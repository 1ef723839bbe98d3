"""Which records and batches a pass retains, and the delete horizon that a batch may get (facts 58, 60-69).

Scalar functions, in plain Python for everybody and compiled from this source into the kernels of a pass
(``cleaning/kernels``); so they take and give integers and truth values only. Must not know where their arguments come
from, nor how a batch is written.
"""

NEVER_MS = 2**63 - 1
"""A time that does not come: the delete horizon of a batch that has none."""

OFFSET_AFTER_ALL = 2**63 - 1

# A record: retained, or why not.

RETAIN = 0
SUPERSEDED = 1
EXPIRED_TOMBSTONE = 2
WITHOUT_KEY = 3

# A batch.

DISCARD = 0
RETAIN_HEADER = 1
COPY = 2
"""Byte for byte."""
REBUILD = 3
REBUILD_WITH_NEW_HORIZON = 4


def should_retain_record(
    is_control: bool,
    offset: int,
    end_offset: int,
    has_key: bool,
    is_superseded: bool,
    has_value: bool,
    horizon_ms: int,
    now_ms: int,
) -> int:
    """``RETAIN`` for one record of a batch that is not discarded as a whole, or the reason why not.

    ``end_offset`` is where the pass ends; ``is_superseded`` whether a dirty record above it has the same key;
    ``horizon_ms`` the batch's delete horizon, or ``NEVER_MS``; ``now_ms`` the instant of the whole pass.
    """
    if is_control or offset >= end_offset:
        return RETAIN
    if not has_key:
        return WITHOUT_KEY
    if is_superseded:
        return SUPERSEDED
    if not has_value and now_ms >= horizon_ms:
        return EXPIRED_TOMBSTONE
    return RETAIN


def batch_retention(
    record_count: int,
    retained_records: int,
    retained_tombstones: int,
    retain_empty: bool,
    is_discardable_marker: bool,
    has_horizon: bool,
) -> int:
    """What becomes of a batch once its records are decided."""
    if retained_records == 0:
        return RETAIN_HEADER if retain_empty else DISCARD
    if not has_horizon and (retained_tombstones > 0 or is_discardable_marker):
        return REBUILD_WITH_NEW_HORIZON
    return COPY if retained_records == record_count else REBUILD


def new_horizon_ms(now_ms: int, delete_retention_ms: int) -> int:
    """When tombstones first met now, or a marker first found without data, may go; never changed later."""
    if delete_retention_ms > NEVER_MS - now_ms:
        return NEVER_MS
    return now_ms + delete_retention_ms
