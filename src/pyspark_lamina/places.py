"""Where a query begins and ends: words, offsets or times, for all partitions or for each.

Owns the options that say so, and which goes before which: ``…Timestamp``, then ``…OffsetsByTimestamp``, then
``…Offsets``. Pure. Must not know which partitions there are before it is told.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.arrow.cluster import AtTime, Position
from lamina.arrow.errors import ReadError
from lamina.peer.listing import EARLIEST, LATEST
from lamina.topic_partition import TopicPartition, name_of
from pyspark_lamina.offsets import from_json, names_of
from pyspark_lamina.option_values import json_object, whole_number

STRATEGY = "startingOffsetsByTimestampStrategy"

_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_EXAMPLE = '{"topicA":{"0":1700000000000,"1":1700000000000}}'


@dataclass(frozen=True, slots=True)
class Side:
    """The options of one side of the range."""

    timestamp: str
    by_timestamp: str
    offsets: str


START = Side("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
END = Side("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")


@dataclass(frozen=True, slots=True)
class Places:
    """A position for all partitions, or one for each."""

    option: str
    everywhere: Position | None = None
    by_partition: Mapping[TopicPartition, Position] | None = None

    def positions(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Raises `ReadError` where those that were named are not those that there are."""
        if self.by_partition is None:
            assert self.everywhere is not None
            return dict.fromkeys(partitions, self.everywhere)
        if missing := set(partitions) - set(self.by_partition):
            advice = "" if "imestamp" in self.option else " (-2 is the earliest offset, -1 the latest)"
            raise ReadError(f"{self.option} must name every partition{advice}; it lacks {names_of(missing)}")
        if extra := set(self.by_partition) - set(partitions):
            raise ReadError(f"{self.option} names {names_of(extra)}, which the query does not read")
        return {where: self.by_partition[where] for where in partitions}


def parse_places(options: Mapping[str, str], side: Side, default: int) -> Places:
    or_latest = side is END or _falls_back_to_latest(options)
    if side.timestamp in options:
        time_ms = whole_number(side.timestamp, options[side.timestamp], least=0)
        return Places(side.timestamp, AtTime(time_ms, or_latest))
    if side.by_timestamp in options:
        times = json_object(side.by_timestamp, options[side.by_timestamp], _TIMES_EXAMPLE, _times)
        return Places(
            side.by_timestamp, by_partition={where: AtTime(time_ms, or_latest) for where, time_ms in times.items()}
        )
    text = options.get(side.offsets)
    if text is None:
        return Places(side.offsets, default)
    if text.strip().lower() in _WORDS:
        return Places(side.offsets, _WORDS[text.strip().lower()])
    if not text.strip().startswith("{"):
        raise ReadError(f"{side.offsets}: {text!r} is neither earliest nor latest nor JSON such as {_OFFSETS_EXAMPLE}")
    return Places(side.offsets, by_partition=json_object(side.offsets, text, _OFFSETS_EXAMPLE, _positions))


def check_batch(start: Places, end: Places) -> None:
    """Raises `ReadError` for what a query that ends cannot mean."""
    _refuse(start, LATEST, "a query that is no stream cannot start at the latest offset")
    _refuse(end, EARLIEST, "a query cannot end at the earliest offset")
    if start.by_partition is None or end.by_partition is None:
        return
    for where, first in start.by_partition.items():
        last = end.by_partition.get(where)
        if last is None or isinstance(first, AtTime) != isinstance(last, AtTime):
            continue
        first_number, last_number = _comparable(first), _comparable(last)
        if first_number > last_number >= 0:
            raise ReadError(
                f"{start.option} of {name_of(where)} is {first_number}, after {end.option}, which is {last_number}"
            )


def _refuse(places: Places, position: int, reason: str) -> None:
    if places.everywhere == position:
        raise ReadError(f"{places.option}: {reason}")
    for where, one in (places.by_partition or {}).items():
        if one == position:
            raise ReadError(f"{places.option} of {name_of(where)}: {reason}")


def _comparable(position: Position) -> int:
    return position.timestamp_ms if isinstance(position, AtTime) else position


def _falls_back_to_latest(options: Mapping[str, str]) -> bool:
    strategy = options.get(STRATEGY, "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ReadError(f"{STRATEGY}: {strategy!r} is neither error nor latest")
    return strategy == "latest"


def _positions(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    offsets = from_json(given)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise ValueError
    return offsets


def _times(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    times = from_json(given)
    if any(time_ms < 0 for time_ms in times.values()):
        raise ValueError
    return times
