"""What becomes of a batch once its records are judged, and the delete horizon it may get (facts 58, 65-69).

Scalar functions, compiled from this source as well: see ``keep.py``. Must not know how a batch is written.
"""

GONE = 0
HEADER_ONLY = 1
COPIED = 2
"""Byte for byte."""
REBUILT = 3
REBUILT_WITH_NEW_HORIZON = 4

_LATEST_MS = 2**63 - 1


def judge_batch(
    record_count: int,
    kept_records: int,
    kept_tombstones: int,
    is_protected: bool,
    is_discardable_marker: bool,
    has_horizon: bool,
) -> int:
    if kept_records == 0:
        return HEADER_ONLY if is_protected else GONE
    if not has_horizon and (kept_tombstones > 0 or is_discardable_marker):
        return REBUILT_WITH_NEW_HORIZON
    return COPIED if kept_records == record_count else REBUILT


def new_horizon_ms(now_ms: int, delete_retention_ms: int) -> int:
    """When tombstones first met now, or a marker first found without data, may go; never changed later."""
    if delete_retention_ms > _LATEST_MS - now_ms:
        return _LATEST_MS
    return now_ms + delete_retention_ms
