"""The role of a partition's follower on this broker, under one leader epoch, and what a follower decides.

Owns the follower's state and its decisions: where to begin, how far to truncate, when to start anew, and what an answer
of the leader lets it set. Truncation goes by leader epochs alone: by the high watermark it would lose acknowledged
records or keep foreign ones (KIP-101, R82). Decisions are functions of two logs' offsets and epochs. Must not know
disks, sockets or time.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

from lamina.errors import ErrorCode
from lamina.log.epochs import EpochStart, LeaderEpochs

_UNDEFINED = -1


class FollowingLog(Protocol):
    """What decisions look at of this broker's log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def epochs(self) -> LeaderEpochs: ...


class FollowerState(StrEnum):
    FETCHING = "fetching"
    TRUNCATING = "truncating"
    """Its log is being brought to where the leader's may follow."""
    WAITING = "waiting"
    """After an error that may pass: it fetches again after a back-off."""
    FAILED = "failed"
    """It does nothing until there is another leader epoch, which makes another follower."""


@dataclass(slots=True)
class Follower:
    leader_id: int
    epoch: int
    state: FollowerState = FollowerState.FETCHING
    reason: str = ""
    """Why it waits or has failed."""
    leader_high_watermark: int = _UNDEFINED
    """As the leader last told it; -1 before that."""

    def fetch(self) -> None:
        self._become(FollowerState.FETCHING)

    def truncate(self) -> None:
        self._become(FollowerState.TRUNCATING)

    def wait(self, reason: str) -> None:
        self._become(FollowerState.WAITING, reason)

    def fail(self, reason: str) -> None:
        self._become(FollowerState.FAILED, reason)

    def _become(self, state: FollowerState, reason: str = "") -> None:
        if self.state is not FollowerState.FAILED:
            self.state, self.reason = state, reason

    def lag(self, log_end_offset: int) -> int:
        """How many committed offsets it lacks; -1 where the leader has not answered yet."""
        known = self.leader_high_watermark
        return _UNDEFINED if known == _UNDEFINED else max(known - log_end_offset, 0)


class Reaction(Enum):
    """What an error in a leader's answer asks a follower to do (R32)."""

    ASK_OFFSETS = "ask offsets"
    FAIL = "fail"
    WAIT = "wait"


def reaction_to(error_code: int) -> Reaction:
    """Where the leader has a newer epoch, only metadata helps; all other errors may pass."""
    match error_code:
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return Reaction.ASK_OFFSETS
        case ErrorCode.FENCED_LEADER_EPOCH:
            return Reaction.FAIL
        case _:
            return Reaction.WAIT


# Beginning


def first_offset(log: FollowingLog, high_watermark: int) -> int:
    """Where a new follower fetches from (R21): the log end, which its newest epoch lets the leader check.

    A log without epochs has nothing to be checked by: only what is known to be committed is kept of it.
    """
    return log.log_end_offset if log.epochs.entries else min(high_watermark, log.log_end_offset)


# Truncating


def truncation_offset(log: FollowingLog, high_watermark: int, leader_end: EpochStart) -> int:
    """Where to truncate to when the leader's log ends its largest epoch at or below ours at ``leader_end`` (R27).

    One answer may not be enough: after it the next fetch asks with an older epoch (KIP-279, R83).
    """
    epoch, end_offset = leader_end
    log_end_offset = log.log_end_offset
    if end_offset == _UNDEFINED:
        return min(high_watermark, log_end_offset)
    own = EpochStart(_UNDEFINED, _UNDEFINED) if epoch == _UNDEFINED else log.epochs.end_of(epoch, log_end_offset)
    if own.epoch == _UNDEFINED:
        return min(end_offset, log_end_offset)
    if own.epoch != epoch:
        # The leader never had what follows our largest epoch below its own.
        return min(own.start_offset, log_end_offset)
    return min(end_offset, own.start_offset, log_end_offset)


def offset_of_shorter_leader(log: FollowingLog, leader_end_offset: int) -> int | None:
    """Out of range (R29), first question: where to truncate to if the leader's log ends below ours."""
    return leader_end_offset if leader_end_offset < log.log_end_offset else None


def offset_to_start_anew(log: FollowingLog, leader_start_offset: int) -> int | None:
    """Out of range (R29), second question: where to start anew if the leader has deleted all that would follow."""
    return leader_start_offset if leader_start_offset > log.log_end_offset else None


def offset_of_straddling_batch(
    log: FollowingLog, base_offset: int, last_offset: int, leader_start_offset: int
) -> int | None:
    """Where a log starts anew to take a batch that begins below its end (R30); ``None`` if there is more to keep.

    DeleteRecords may cut inside a batch: the leader's log then starts in the middle of it, and ours with it. Either
    ours is empty, or the leader has deleted all of it: then its epochs cannot tell any more that our tail is foreign.
    """
    has_nothing = log.log_end_offset in (log.log_start_offset, leader_start_offset)
    return base_offset if has_nothing and 0 <= base_offset < log.log_end_offset <= last_offset else None


# Taking over


def followed_high_watermark(log: FollowingLog, leader_high_watermark: int) -> int:
    """The leader's, as far as this log reaches (R15, R89); it may be lower than before."""
    return max(min(leader_high_watermark, log.log_end_offset), log.log_start_offset)


def followed_log_start(log: FollowingLog, high_watermark: int, leader_log_start_offset: int) -> int:
    """The leader's if it is higher than ours, but never above our high watermark (R17)."""
    return max(min(leader_log_start_offset, high_watermark), log.log_start_offset)
