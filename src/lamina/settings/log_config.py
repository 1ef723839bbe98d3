"""What one partition's log does, as resolved values.

Owns the list of facts the log room reads about a topic, with units in the names. The defaults are Kafka's
(facts 4 and 5); a test holds them equal to the definitions. Must not know names of settings, files or
sources.
"""

from dataclasses import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Which replicas of a topic are throttled: each a partition and a broker."""

    is_every: bool = False
    replicas: frozenset[tuple[int, int]] = frozenset()

    def __contains__(self, replica: tuple[int, int]) -> bool:
        return self.is_every or replica in self.replicas


NOT_THROTTLED = ThrottledReplicas()


@dataclass(frozen=True, slots=True)
class LogConfig:
    """One topic's settings as its logs use them; ``-1`` means no limit for the two retention fields."""

    segment_bytes: int = 1024 * MEBIBYTE
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * MEBIBYTE
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    compact: bool = False
    delete: bool = True
    max_message_bytes: int = MEBIBYTE + 12
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = HOUR_MS
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    preallocate: bool = False
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_insync_replicas: int = 1
    throttled_leaders: ThrottledReplicas = NOT_THROTTLED
    throttled_followers: ThrottledReplicas = NOT_THROTTLED
