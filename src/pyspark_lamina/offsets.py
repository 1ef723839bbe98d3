"""Offsets of partitions, and their JSON: ``{"orders": {"0": 23, "1": 40}}``, as Spark's own Kafka source writes them.

Owns both directions, and that equal offsets are equal JSON: topics in the order of their names, partitions of their
numbers. Pure. Must not know what the offsets are for.
"""

from collections.abc import Mapping
from typing import Any

from lamina.arrow.errors import ReadError
from lamina.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]


def to_json(offsets: Offsets) -> OffsetsJson:
    told: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        told.setdefault(topic, {})[str(partition)] = offset
    return told


def from_json(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Raises ValueError, TypeError or AttributeError for anything else."""
    return {(topic, _number(key)): _offset(value) for topic, told in given.items() for key, value in told.items()}


def from_checkpoint(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    try:
        return from_json(given)
    except (ValueError, TypeError, AttributeError):
        raise ReadError(f"the checkpoint holds no offsets of topics but {str(given)[:100]!r}") from None


def name_of(where: TopicPartition) -> str:
    return f"{where[0]}-{where[1]}"


def names_of(partitions: Any) -> str:
    """A few of them, for a sentence."""
    ordered = sorted(partitions)
    told = ", ".join(name_of(where) for where in ordered[:5])
    return told if len(ordered) <= 5 else f"{told} and {len(ordered) - 5} more"


def _number(key: str) -> int:
    if not (key.isascii() and key.isdigit()):
        raise ValueError
    return int(key)


def _offset(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value
