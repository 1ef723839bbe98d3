"""Offsets of partitions, and their JSON: ``{"orders": {"0": 23, "1": 40}}``, as Spark's own Kafka source writes them.

Ids of topics stand beside them, each as a topic without a partition, ``{"orders@3r2bQ…": {}}``: whoever reads offsets
alone, as Spark's own source does, finds nothing there, and no topic has such a name. In the same way the end of a
query's first batch says where that began, ``{"orders from 0:20,1:40": {}}``: the engine's checkpoint does not, and
asks again wherever it does the batch again. Owns both directions, and that equal offsets are equal JSON: topics in the
order of their names, partitions of their numbers. Pure. Must not know what the offsets are for.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from lamina.arrow.errors import ReadError
from lamina.topic_partition import TopicPartition, name_of

Offsets = Mapping[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]
TopicIds = Mapping[str, UUID | None]
NO_IDS: TopicIds = {}

_ID_MARK = "@"
_START_MARK = " from "


def to_json(offsets: Offsets, topic_ids: TopicIds = NO_IDS, starts: Offsets | None = None) -> OffsetsJson:
    """``starts`` are those of a batch that ends there."""
    told: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        told.setdefault(topic, {})[str(partition)] = offset
    for topic in list(told):
        topic_id = topic_ids.get(topic)
        if topic_id is not None:
            told[f"{topic}{_ID_MARK}{urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}"] = {}
    by_topic: dict[str, list[str]] = {}
    for (topic, partition), offset in sorted((starts or {}).items()):
        by_topic.setdefault(topic, []).append(f"{partition}:{offset}")
    for topic, at in by_topic.items():
        told[f"{topic}{_START_MARK}{','.join(at)}"] = {}
    return told


def starts_in(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Where the batch began that ends there, if that is told: it is of a query's first one."""
    found = {}
    for key in given:
        topic, mark, text = key.partition(_START_MARK)
        for one in text.split(",") if mark else ():
            partition, _, offset = one.partition(":")
            found[topic, int(partition)] = int(offset)
    return found


def topic_ids_in(given: Mapping[str, Any]) -> dict[str, UUID]:
    """Of the topics of which the JSON tells ids: not that of Spark's own source."""
    found = {}
    for key in given:
        topic, mark, text = key.partition(_ID_MARK)
        with suppress(ValueError):
            if mark:
                found[topic] = UUID(bytes=urlsafe_b64decode(text + "=="))
    return found


def from_json(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Raises ValueError, TypeError or AttributeError for anything else."""
    return {(topic, _number(key)): _offset(value) for topic, told in given.items() for key, value in told.items()}


def from_checkpoint(given: Mapping[str, Any]) -> dict[TopicPartition, int]:
    try:
        return from_json(given)
    except (ValueError, TypeError, AttributeError):
        raise ReadError(f"the checkpoint holds no offsets of topics but {str(given)[:100]!r}") from None


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
