"""When a log begins a new segment, and how large its file is made (formats.md §2.3, fact 7).

Must not know how a segment is closed or begun: the log does it.
"""

from zlib import crc32

from lamina.log.segment import Segment
from lamina.settings.log_config import LogConfig


def initial_segment_bytes(config: LogConfig) -> int:
    """How large the log file of a new segment is made."""
    return config.segment_bytes if config.preallocate else 0


def is_due(
    config: LogConfig, log_name: str, segment: Segment, size_bytes: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether a batch of this size and time belongs into a new segment; ``segment`` holds at least one batch."""
    if segment.size_bytes + size_bytes > config.segment_bytes or segment.indexes.is_full:
        return True
    first_timestamp = segment.first_timestamp()
    waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.created_ms
    if waited_ms <= 0:
        return False
    limit_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
    return waited_ms > limit_ms - _jitter_ms(config, log_name, segment, limit_ms)


def _jitter_ms(config: LogConfig, log_name: str, segment: Segment, limit_ms: int) -> int:
    """A share of ``segment.jitter.ms`` that stays the same for a segment, so that logs do not roll together."""
    jitter_ms = min(config.segment_jitter_ms, limit_ms)
    return crc32(f"{log_name}@{segment.base_offset}".encode()) % jitter_ms if jitter_ms else 0
