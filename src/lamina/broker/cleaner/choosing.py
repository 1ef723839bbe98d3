"""Which of the logs that were looked at are cleaned next, and which stretch of each.

Owns the order: whose cleaning somebody asked for, then the filthiest (fact 23), then what has only horizons that
passed. Must not know passes.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from lamina.broker.cleaner.sight import Sight
from lamina.cleaning.gather import PassRange
from lamina.log.checkpoints import TopicPartition

PASSES_AT_ONCE = 128
"""How many passes are open at most."""


class Choice(NamedTuple):
    sight: Sight
    extent: PassRange
    is_manual: bool = False
    """Somebody asked for it."""


def choose(sights: Sequence[Sight], wanted: Set[TopicPartition]) -> list[Choice]:
    """The eligible ones, and those that are ``wanted`` if anything can be cleaned of them at all."""
    chosen = [one for one in sights if one.cleanable.cleanable_bytes and (one.is_eligible or one.key in wanted)]
    chosen.sort(key=lambda one: (one.key not in wanted, -one.cleanable.dirty_ratio))
    return [
        Choice(
            one,
            PassRange(one.cleanable.first_dirty_offset, one.cleanable.first_uncleanable_offset),
            is_manual=one.key in wanted,
        )
        for one in chosen
    ]


def choose_idle(
    sights: Sequence[Sight], horizons: Mapping[TopicPartition, int | None], now_ms: int, limit: int
) -> list[Choice]:
    """Logs in whose clean section a delete horizon has passed, or may have: nobody knows before the first pass.

    ``horizons`` are the earliest that are known; ``None`` where there is none.
    """
    chosen: list[Choice] = []
    for sight in sights:
        earliest_ms = horizons.get(sight.key, -1)
        bases = [segment.base_offset for segment in sight.partition.log.segments]
        end = max((base for base in bases if base <= sight.cleanable.first_dirty_offset), default=0)
        if len(chosen) < limit and earliest_ms is not None and earliest_ms <= now_ms and end > bases[0]:
            chosen.append(Choice(sight, PassRange(end, end, only_expired=True)))
    return chosen
