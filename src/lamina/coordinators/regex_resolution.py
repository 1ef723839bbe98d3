"""When the expressions that members of a consumer group subscribe to are resolved into topics.

The resolution itself is an effect: it looks at every topic, and its result comes back later. All expressions of a
group are resolved together, so that they cause one rebalance. Owns what is under way; nothing here is durable. Must
not know how expressions are matched.
"""

from collections.abc import Iterable, Mapping

from lamina.coordinators.decision import Now
from lamina.coordinators.records.group_records import RegexValue

BATCH_INTERVAL_MS = 10_000
"""Expressions are not resolved more often than this, as in Kafka."""


class RegexResolution:
    def __init__(self) -> None:
        self._is_under_way = False
        self._version = -1
        """Of the image that was, or is being, resolved against; -1 after loading."""
        self._started_at_ms = 0
        self._failed_at_ms: int | None = None

    def is_due(
        self,
        subscribed: frozenset[str],
        resolved: Mapping[str, RegexValue],
        image_version: int,
        refresh_interval_ms: int,
        now: Now,
    ) -> bool:
        """Whether to resolve now: an expression is new, there are new topics, or it was long ago."""
        if not subscribed or self._is_under_way or self._has_just_failed(now):
            return False
        last_ms = max((value.timestamp_ms for value in resolved.values()), default=None)
        if last_ms is None:
            return True
        if last_ms <= now.wall_ms <= last_ms + BATCH_INTERVAL_MS:
            return False
        return (
            not subscribed <= resolved.keys()
            or self._version < image_version
            or now.wall_ms > last_ms + refresh_interval_ms
        )

    def start(self, image_version: int, now: Now) -> None:
        self._is_under_way = True
        self._version = image_version
        self._started_at_ms = now.wall_ms

    def finish(self) -> None:
        self._is_under_way = False
        self._failed_at_ms = None

    def fail(self, now: Now) -> None:
        """There is no result, or none that could be stored."""
        self._is_under_way = False
        self._failed_at_ms = now.wall_ms

    def _has_just_failed(self, now: Now) -> bool:
        return self._failed_at_ms is not None and 0 <= now.wall_ms - self._failed_at_ms <= BATCH_INTERVAL_MS

    def value(self, topics: Iterable[str]) -> RegexValue:
        return RegexValue(tuple(sorted(topics)), self._version, self._started_at_ms)
