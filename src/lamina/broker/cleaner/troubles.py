"""Partitions whose last pass failed: why, and when it is tried again.

Owns the back-off: it doubles with every failure, from ``log.cleaner.backoff.ms`` up to an hour. A partition is
uncleanable when its log is the reason (a damaged batch), and just late when the machine is (a full disk, a job that
died). Kafka gives an uncleanable one up until its next start (fact 92); here it is shown and tried again. Must not
know passes.
"""

from dataclasses import dataclass

from lamina.log.checkpoints import TopicPartition

_SHORTEST_MS = 1000
_LONGEST_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    is_uncleanable: bool
    attempts: int
    since_ms: int
    retry_at_ms: int


class Troubles:
    def __init__(self) -> None:
        self._by_key: dict[TopicPartition, Trouble] = {}

    def get(self, key: TopicPartition) -> Trouble | None:
        return self._by_key.get(key)

    def is_waiting(self, key: TopicPartition, now_ms: int) -> bool:
        trouble = self._by_key.get(key)
        return trouble is not None and now_ms < trouble.retry_at_ms

    def is_uncleanable(self, key: TopicPartition) -> bool:
        trouble = self._by_key.get(key)
        return trouble is not None and trouble.is_uncleanable

    def uncleanable(self) -> list[TopicPartition]:
        return [key for key, trouble in self._by_key.items() if trouble.is_uncleanable]

    def add(self, key: TopicPartition, reason: str, *, is_uncleanable: bool, backoff_ms: int, now_ms: int) -> Trouble:
        before = self._by_key.get(key)
        attempts = 1 if before is None else before.attempts + 1
        wait_ms = min(max(backoff_ms, _SHORTEST_MS) * 2 ** min(attempts - 1, 20), _LONGEST_MS)
        since_ms = now_ms if before is None else before.since_ms
        trouble = self._by_key[key] = Trouble(reason, is_uncleanable, attempts, since_ms, now_ms + wait_ms)
        return trouble

    def clear(self, key: TopicPartition) -> None:
        self._by_key.pop(key, None)

    def retry_now(self, key: TopicPartition, now_ms: int) -> None:
        """Somebody asks for another attempt; what is known of the trouble stays until it is over."""
        trouble = self._by_key.get(key)
        if trouble is not None:
            self._by_key[key] = Trouble(
                trouble.reason,
                trouble.is_uncleanable,
                trouble.attempts,
                trouble.since_ms,
                min(trouble.retry_at_ms, now_ms),
            )
