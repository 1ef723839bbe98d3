"""Why part of a log cannot be cleaned now: sentences for a person (facts 15-17).

Owns the words. Must not know passes: it is shown a log as the rules see it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from lamina.broker.cleaner.sight import Sight
from lamina.broker.partition import Partition
from lamina.log.segment import Segment


class Holder(StrEnum):
    """What holds a part of a log back."""

    TRANSACTION = "transaction"
    LAG = "lag"
    ACTIVE_SEGMENT = "active segment"


@dataclass(frozen=True, slots=True)
class Hold:
    holder: Holder
    sentence: str
    until_ms: int | None = None
    """When a clock decides."""


def why_uncleanable(sight: Sight, now_ms: int) -> list[Hold]:
    """What holds the rest of the log back, from its first uncleanable offset on."""
    partition, log = sight.partition, sight.partition.log
    config, active = log.config, log.segments.active
    holds: list[Hold] = []
    first = sight.cleanable.first_uncleanable_offset
    closed = [one for one in log.segments if one.base_offset >= first and one is not active]
    if closed and (open_since := _open_since(partition)) is not None and open_since < active.base_offset:
        producer_id = next(one.producer_id for one in log.producers.producers.values() if one.open_since == open_since)
        sentence = f"producer {producer_id} has a transaction open since offset {open_since}: nothing behind it goes"
        holds.append(Hold(Holder.TRANSACTION, sentence))
    young = _first_young(sight, closed, now_ms)
    if young is not None:
        until_ms = young.age_timestamp_ms() + config.min_compaction_lag_ms
        sentence = (
            f"what comes from offset {young.base_offset} on is too young until {moment_text(until_ms)}: "
            f"min.compaction.lag.ms = {config.min_compaction_lag_ms}"
        )
        holds.append(Hold(Holder.LAG, sentence, until_ms))
    if active.size_bytes:
        sentence = (
            f"{active.size_bytes} bytes from offset {active.base_offset} on are in the active segment, which is never "
            f"cleaned: it closes when it is full or old, or with lamina compact --roll"
        )
        holds.append(Hold(Holder.ACTIVE_SEGMENT, sentence))
    return holds


def _open_since(partition: Partition) -> int | None:
    opened = [one.open_since for one in partition.log.producers.producers.values() if one.open_since is not None]
    return min(opened, default=None)


def _first_young(sight: Sight, closed: list[Segment], now_ms: int) -> Segment | None:
    lag_ms = sight.partition.log.config.min_compaction_lag_ms
    if not lag_ms:
        return None
    return next((segment for segment in closed if segment.age_timestamp_ms() > now_ms - lag_ms), None)


def moment_text(moment_ms: int) -> str:
    """A time for a person; far ones are said to be far."""
    try:
        return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "the end of time"
