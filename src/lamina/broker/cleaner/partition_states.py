"""Whether a partition may be cleaned now: a pass is open, its cleaning is paused, or its last pass failed.

Owns the states of facts 26 and 27 (none, in progress, aborted, paused(n)) and the back-off after failures. A pass that
is aborted is fenced at once by its plan id, so its job is not waited for; the partition can be cleaned again when the
job has answered. Must not know passes.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from lamina.broker.backoff import doubled_ms
from lamina.topic_partition import TopicPartition, name_of


class State(StrEnum):
    NONE = "none"
    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    PAUSED = "paused"


@dataclass(slots=True)
class _Entry:
    has_pass: bool = False
    is_aborted: bool = False
    pauses: int = 0


class CleaningStates:
    def __init__(self) -> None:
        self._entries: dict[TopicPartition, _Entry] = {}

    def state(self, key: TopicPartition) -> State:
        entry = self._entries.get(key)
        if entry is None:
            return State.NONE
        if entry.has_pass:
            return State.ABORTED if entry.is_aborted else State.IN_PROGRESS
        return State.PAUSED

    def may_begin(self, key: TopicPartition) -> bool:
        return key not in self._entries

    def begin(self, key: TopicPartition) -> None:
        """A pass opens; only from none."""
        if key in self._entries:
            raise ValueError(f"{name_of(key)} is {self.state(key)} and cannot be cleaned")
        self._entries[key] = _Entry(has_pass=True)

    def abort(self, key: TopicPartition) -> None:
        """The result of the pass will not be used; nothing happens where there is no pass."""
        entry = self._entries.get(key)
        if entry is not None and entry.has_pass:
            entry.is_aborted = True

    def pause(self, key: TopicPartition) -> None:
        """No pass may begin until :meth:`resume`; one that is open is aborted."""
        entry = self._entries.setdefault(key, _Entry())
        entry.pauses += 1
        entry.is_aborted = entry.has_pass

    def resume(self, key: TopicPartition) -> None:
        entry = self._entries.get(key)
        if entry is None or not entry.pauses:
            raise ValueError(f"the cleaning of {name_of(key)} is not paused")
        entry.pauses -= 1
        self._remove_if_none(key, entry)

    def finish(self, key: TopicPartition) -> bool:
        """The pass is over. Returns whether its result counts: not if it was aborted."""
        entry = self._entries.get(key)
        if entry is None or not entry.has_pass:
            raise ValueError(f"{name_of(key)} is {self.state(key)}, no pass can end")
        counts = not entry.is_aborted
        entry.has_pass = entry.is_aborted = False
        self._remove_if_none(key, entry)
        return counts

    def forget(self, key: TopicPartition) -> None:
        """The partition is gone; another one may come under its name."""
        self._entries.pop(key, None)

    def _remove_if_none(self, key: TopicPartition, entry: _Entry) -> None:
        if not entry.has_pass and not entry.pauses:
            del self._entries[key]


_SHORTEST_BACKOFF_MS = 1000
_LONGEST_BACKOFF_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class FailedPass:
    reason: str
    is_uncleanable: bool
    """The log is the reason (a damaged batch), and not the machine (a full disk, a job that died)."""
    attempts: int
    since_ms: int
    retry_at_ms: int


class FailedPasses:
    """The partitions whose last pass failed, and when each is tried again.

    The wait doubles with every failure, from ``log.cleaner.backoff.ms`` up to an hour. Kafka gives an uncleanable
    partition up until its next start (fact 92); here it is shown and tried again.
    """

    def __init__(self) -> None:
        self._by_key: dict[TopicPartition, FailedPass] = {}

    def get(self, key: TopicPartition) -> FailedPass | None:
        return self._by_key.get(key)

    def is_waiting(self, key: TopicPartition, now_ms: int) -> bool:
        failed = self._by_key.get(key)
        return failed is not None and now_ms < failed.retry_at_ms

    def is_uncleanable(self, key: TopicPartition) -> bool:
        failed = self._by_key.get(key)
        return failed is not None and failed.is_uncleanable

    def uncleanable(self) -> list[TopicPartition]:
        return [key for key, failed in self._by_key.items() if failed.is_uncleanable]

    def add(
        self, key: TopicPartition, reason: str, *, is_uncleanable: bool, backoff_ms: int, now_ms: int
    ) -> FailedPass:
        before = self._by_key.get(key)
        attempts = 1 if before is None else before.attempts + 1
        wait_ms = doubled_ms(max(backoff_ms, _SHORTEST_BACKOFF_MS), attempts, _LONGEST_BACKOFF_MS)
        since_ms = now_ms if before is None else before.since_ms
        failed = self._by_key[key] = FailedPass(reason, is_uncleanable, attempts, since_ms, now_ms + wait_ms)
        return failed

    def clear(self, key: TopicPartition) -> None:
        self._by_key.pop(key, None)

    def retry_now(self, key: TopicPartition, now_ms: int) -> None:
        """Somebody asks for another attempt; the failure is shown until one succeeds."""
        failed = self._by_key.get(key)
        if failed is not None:
            self._by_key[key] = replace(failed, retry_at_ms=min(failed.retry_at_ms, now_ms))
