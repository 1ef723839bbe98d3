"""How far one follower has come, as its leader sees it.

Owns what a leader remembers of a follower's fetches, and when a follower counts as caught up (R6, R7). Times are
monotonic milliseconds. Must not know in-sync sets.
"""

from dataclasses import dataclass

UNKNOWN_OFFSET = -1
UNCHECKED_EPOCH = -1
"""The broker epoch of whoever names none."""
NEVER_MS = -(2**62)


@dataclass(slots=True)
class FollowerProgress:
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: int = NEVER_MS
    last_fetch_ms: int = NEVER_MS
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET
    broker_epoch: int = UNCHECKED_EPOCH
    """The one under which it fetched last."""
    has_fetched: bool = False
    """Whether it did so in this leader epoch."""

    def fetched(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> bool:
        """Take in a fetch, which tells where the follower's log ends. Returns whether that has changed.

        A follower that asks for what the leader had at the fetch before was caught up then: under a steady load it
        never sees the end, and is in sync all the same.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        is_moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_last_fetch = leader_end_offset
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch
        self.has_fetched = True
        return is_moved

    def stayed(self, until_ms: int) -> None:
        """It fetched from where the leader's log ended until then, as it did when it was last taken in."""
        self.last_caught_up_ms = max(self.last_caught_up_ms, until_ms)
        self.last_fetch_ms = max(self.last_fetch_ms, until_ms)

    def is_caught_up(self, leader_end_offset: int, lag_time_max_ms: int, now_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_time_max_ms
