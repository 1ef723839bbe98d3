"""Which segments of a log are too old, too much, or wholly below its start (fact 95), and the steps in which they go.

Must not know timers; compact-only logs lose just what lies below the log start offset.
"""

from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.log.steps import Steps


def delete_expired(log: PartitionLog, now_ms: int, high_watermark: int) -> Steps:
    """Remove what retention says may go, never at or above ``high_watermark``, in order.

    When that is everything the active segment rolls, so that the log is never without one. The names of what stays are
    synced first: were they lost with the old ones gone, offsets would start from 0 again.
    """
    if log.failure is not None or log.is_truncating:
        return
    ages = Ages(log, now_ms)
    if ages.unknown:
        yield ages.read
    log.require_online()
    try:
        expired = expired_segments(log, high_watermark, ages)
        if expired and expired[-1] is log.segments.active:
            log.roll(now_ms)
    except OSError as error:
        raise log.fail(error) from error
    if expired:
        yield log.sync_names
    for segment in expired:
        yield from log.delete_oldest(segment, now_ms)


class Ages:
    """How old segments are. Those whose indexes are not open are looked at on a thread: there may be thousands."""

    def __init__(self, log: PartitionLog, now_ms: int) -> None:
        self._log = log
        self._oldest_ms = now_ms - log.config.retention_ms
        self._found: dict[int, int] = {}
        is_asked = log.config.delete and log.config.retention_ms >= 0
        self.unknown = [one.extent() for one in log.segments if not one.has_open_indexes] if is_asked else []

    def read(self) -> None:
        """Read what is unknown, as far as it is too old. May run on any thread."""
        shape = self._log.shape.for_another_thread()
        try:
            for extent in self.unknown:
                segment = Segment.of_extent(self._log.disk, self._log.path, extent, shape)
                self._found[extent.base_offset] = age_ms = segment.age_timestamp_ms()
                segment.close()
                if age_ms >= self._oldest_ms:
                    break
        except FileNotFoundError:
            return  # It was removed or replaced meanwhile: those before it are known.
        except OSError as error:
            raise self._log.fail(error) from error

    def is_expired(self, segment: Segment) -> bool:
        if segment.has_open_indexes:
            return segment.age_timestamp_ms() < self._oldest_ms
        return self._found.get(segment.base_offset, self._oldest_ms) < self._oldest_ms


def expired_segments(log: PartitionLog, high_watermark: int, ages: Ages) -> list[Segment]:
    """The segments from the oldest on that may go, in order."""
    candidates = _below(log, high_watermark)
    config = log.config
    count = 0
    if config.delete and config.retention_ms >= 0:
        while count < len(candidates) and ages.is_expired(candidates[count]):
            count += 1
    if config.delete and config.retention_bytes >= 0:
        excess = log.size_bytes() - config.retention_bytes - sum(segment.size_bytes for segment in candidates[:count])
        while count < len(candidates) and excess >= candidates[count].size_bytes:
            excess -= candidates[count].size_bytes
            count += 1
    while count < len(candidates) and _end(log, candidates[count]) <= log.log_start_offset:
        if candidates[count] is log.segments.active:
            break
        count += 1
    return candidates[:count]


def _below(log: PartitionLog, high_watermark: int) -> list[Segment]:
    """The segments wholly below the high watermark; an empty active segment stays where it is."""
    active = log.segments.active
    return [
        segment
        for segment in log.segments
        if _end(log, segment) <= high_watermark and not (segment is active and not segment.size_bytes)
    ]


def _end(log: PartitionLog, segment: Segment) -> int:
    number = log.segments.number_of(segment.base_offset) + 1
    return log.segments[number].base_offset if number < len(log.segments) else log.log_end_offset
