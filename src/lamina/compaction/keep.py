"""Whether a record stays: the rule of compaction (facts 60-64).

One scalar function, in plain Python for everybody and compiled from this source for the kernel of a pass
(``cleaning/kernels``); so it takes and gives integers and truth values only. Must not know where its arguments come
from.
"""

KEPT = 0
SUPERSEDED = 1
EXPIRED_TOMBSTONE = 2
WITHOUT_KEY = 3


def judge_record(
    is_control: bool,
    offset: int,
    end_offset: int,
    has_key: bool,
    is_superseded: bool,
    has_value: bool,
    horizon_ms: int,
    now_ms: int,
) -> int:
    """What becomes of one record of a batch that does not go as a whole, and why.

    ``end_offset`` is where the pass ends; ``is_superseded`` whether a dirty record above it has the same key;
    ``horizon_ms`` the batch's delete horizon, or ``NEVER_MS``; ``now_ms`` the instant of the whole pass.
    """
    if is_control or offset >= end_offset:
        return KEPT
    if not has_key:
        return WITHOUT_KEY
    if is_superseded:
        return SUPERSEDED
    if not has_value and now_ms >= horizon_ms:
        return EXPIRED_TOMBSTONE
    return KEPT
