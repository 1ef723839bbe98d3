"""Files of a leader, lent to a reader that sees its disk (LendSegments and KeepLease, Lamina's own).

Owns how they are asked for, and what a response means. Must not know files, nor when a lease is renewed.
"""

from typing import Any, NamedTuple
from uuid import UUID

from lamina.errors import error_from_code
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import KEEP_LEASE, LEND_SEGMENTS

_VERSIONS = range(1)


class LentSegment(NamedTuple):
    base_offset: int
    start_position: int
    end_position: int
    inode: int


class LentAborted(NamedTuple):
    """An aborted transaction: its records from ``first_offset`` on, up to the marker at ``last_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int


class Lent(NamedTuple):
    node_id: int
    """Who lends: the lease is kept and given back there, whoever leads by then."""
    lease_id: UUID | None
    """``None`` where there is nothing to lend now."""
    lease_ms: int
    folder: str
    """As the broker's machine names it."""
    end_offset: int
    """The log has no more up to there than the segments have."""
    segments: list[LentSegment]
    aborted: list[LentAborted]


def lend_segments(
    topic: str, topic_id: UUID | None, partition: int, start: int, end: int, *, isolation_level: int, boot_id: str
) -> MessageCall:
    return MessageCall(
        LEND_SEGMENTS,
        _VERSIONS,
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        start_offset=start,
        end_offset=end,
        isolation_level=isolation_level,
        boot_id=boot_id,
    )


def lent(response: Any) -> Lent:
    """Raises its error."""
    _check(response)
    return Lent(
        int(response.node_id),
        response.lease_id,
        round(response.lease.total_seconds() * 1000),
        str(response.folder),
        int(response.end_offset),
        [
            LentSegment(int(one.base_offset), int(one.start_position), int(one.end_position), int(one.inode))
            for one in response.segments
        ],
        [
            LentAborted(int(one.producer_id), int(one.first_offset), int(one.last_offset))
            for one in response.aborted_transactions
        ],
    )


def keep_lease(lease_id: UUID, *, is_over: bool) -> MessageCall:
    return MessageCall(KEEP_LEASE, _VERSIONS, lease_id=lease_id, is_over=is_over)


def check_kept(response: Any) -> None:
    """Raises its error."""
    _check(response)


def _check(response: Any) -> None:
    if response.error_code:
        raise error_from_code(response.error_code, response.error_message or "the broker refused")
