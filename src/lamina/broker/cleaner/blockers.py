"""What blocks the cleaning of a part of a log: sentences for a person (facts 15-17).

Owns the sentences. Must not know passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from lamina.compaction.eligibility import Cleanable
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.settings.log_config import LogConfig


class BlockerKind(StrEnum):
    TRANSACTION = "transaction"
    LAG = "lag"
    ACTIVE_SEGMENT = "active segment"


@dataclass(frozen=True, slots=True)
class Blocker:
    kind: BlockerKind
    sentence: str
    until_ms: int | None = None
    """When it ends by itself, if time ends it."""


def find_blockers(log: PartitionLog, cleanable: Cleanable, now_ms: int) -> list[Blocker]:
    """What blocks the rest of the log, from its first uncleanable offset on."""
    config, active = log.config, log.segments.active
    blockers: list[Blocker] = []
    first = cleanable.first_uncleanable_offset
    closed = [one for one in log.segments if one.base_offset >= first and one is not active]
    if closed and (open_since := _open_since(log)) is not None and open_since < active.base_offset:
        producer_id = next(
            one.producer_id for one in log.producers.producers.values() if one.current_txn_first_offset == open_since
        )
        sentence = (
            f"producer {producer_id} has a transaction open since offset {open_since}: nothing from offset {first} on, "
            f"where that segment begins, can be removed before it ends"
        )
        blockers.append(Blocker(BlockerKind.TRANSACTION, sentence))
    young = _first_young(log, closed, now_ms)
    if young is not None:
        until_ms = young.age_timestamp_ms() + config.min_compaction_lag_ms
        sentence = (
            f"records from offset {young.base_offset} on are too young until {moment_text(until_ms, now_ms)}: "
            f"min.compaction.lag.ms = {config.min_compaction_lag_ms}"
        )
        blockers.append(Blocker(BlockerKind.LAG, sentence, until_ms))
    if active.size_bytes:
        sentence = (
            f"{active.size_bytes} bytes from offset {active.base_offset} on are in the active segment, which is never "
            f"cleaned: it closes when it is full or old, or with lamina compact --roll"
        )
        blockers.append(Blocker(BlockerKind.ACTIVE_SEGMENT, sentence))
    return blockers


def _open_since(log: PartitionLog) -> int | None:
    opened = [
        one.current_txn_first_offset
        for one in log.producers.producers.values()
        if one.current_txn_first_offset is not None
    ]
    return min(opened, default=None)


def _first_young(log: PartitionLog, closed: list[Segment], now_ms: int) -> Segment | None:
    lag_ms = log.config.min_compaction_lag_ms
    if not lag_ms:
        return None
    return next((segment for segment in closed if segment.age_timestamp_ms() > now_ms - lag_ms), None)


def retention_sentences(config: LogConfig) -> list[str]:
    """When retention deletes a segment, whatever its keys (fact 96)."""
    if not config.delete:
        return []
    sentences = []
    if config.retention_ms >= 0:
        sentences.append(
            f"its segment is deleted when everything in it is older than retention.ms = {config.retention_ms}"
        )
    if config.retention_bytes >= 0:
        sentences.append(
            f"its segment is deleted when the segments after it fill retention.bytes = {config.retention_bytes}"
        )
    return sentences


def why_nothing_is_cleanable(cleanable: Cleanable, blockers: Sequence[str]) -> str:
    """Why a pass over a log would do nothing now."""
    if not blockers:
        blockers = ["all of it is clean" if cleanable.clean_bytes else "it is empty"]
    return "; ".join(["nothing in it can be cleaned", *blockers])


def moment_text(moment_ms: int, now_ms: int) -> str:
    """A time for a person, and how far away it is."""
    try:
        text = datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "the end of time"
    return f"{text} (in {_span_text(moment_ms - now_ms)})" if moment_ms > now_ms else text


def _span_text(span_ms: int) -> str:
    """In the largest unit of which there is at least one and a half, rounded up."""
    for unit, unit_ms in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if 2 * span_ms >= 3 * unit_ms:
            return f"{-(-span_ms // unit_ms)} {unit}"
    return f"{-(-span_ms // 1000)} s"
