"""What a broker that follows and its controller say to each other: by FollowMetadata, or within one process.

Owns the two messages alone, so that neither side knows the other. Must not know how they travel.
"""

from typing import NamedTuple

from lamina.broker.metadata.reports import Report

NOTHING_YET = -1
LONGEST_WAIT_MS = 2000


class FollowRequest(NamedTuple):
    """How far the broker has followed, how long it would wait for more, and what it reports."""

    controller_epoch: int
    version: int
    max_wait_ms: int
    report: Report


class FollowResponse(NamedTuple):
    controller_epoch: int
    version: int
    is_full: bool
    """Whether ``lines`` are the whole image; else they are the changes since the version in the request."""
    lines: list[bytes]
