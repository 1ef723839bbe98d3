"""Which topics and partitions a query reads: ``subscribe``, ``subscribePattern`` or ``assign``.

Owns the parsing of the three, and what each selects of the topics that there are. Pure. Must not know offsets.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.arrow.cluster import Topic
from lamina.arrow.errors import ReadError
from lamina.topic_partition import TopicPartition
from pyspark_lamina.option_values import json_object

SUBSCRIBE, PATTERN, ASSIGN = "subscribe", "subscribePattern", "assign"
_EXAMPLE = '{"topicA":[0,1],"topicB":[2,4]}'


@dataclass(frozen=True, slots=True)
class Selection:
    """One of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    includes_internal: bool = False
    """Whether a pattern may select Kafka's own topics."""

    @property
    def names(self) -> Sequence[str] | None:
        """The topics to ask about; None for all."""
        if self.pattern is not None:
            return None
        return self.topics or sorted({topic for topic, _ in self.partitions})

    def missing(self, topics: Mapping[str, Topic]) -> list[str]:
        """What was named and is not there: topics, or partitions of topics."""
        absent = [f"topic {name!r}" for name in self.names or () if name not in topics]
        known = [(topics[topic], partition) for topic, partition in self.partitions if topic in topics]
        return absent + [
            f"partition {partition} of topic {topic.name!r}"
            for topic, partition in known
            if partition not in topic.leaders
        ]

    def covers(self, where: TopicPartition) -> bool:
        """Whether it would be selected if it was there, as far as names tell."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, where[0]) is not None
        return where in self.partitions or where[0] in self.topics

    def select(self, topics: Iterable[Topic]) -> list[TopicPartition]:
        """Of the topics that there are."""
        pattern = None if self.pattern is None else re.compile(self.pattern)
        there = [
            (topic.name, partition)
            for topic in topics
            if pattern is None or (pattern.fullmatch(topic.name) and (self.includes_internal or not topic.is_internal))
            for partition in topic.leaders
        ]
        return sorted(set(there) & set(self.partitions) if self.partitions else there)


def parse_selection(options: Mapping[str, str], *, includes_internal: bool) -> Selection:
    given = [name for name in (SUBSCRIBE, PATTERN, ASSIGN) if name in options]
    if len(given) != 1:
        told = "none of them" if not given else " and ".join(given)
        raise ReadError(f"name the topics by one of subscribe, subscribePattern and assign; given: {told}")
    (name,) = given
    text = options[name].strip()
    if name == ASSIGN:
        partitions = json_object(ASSIGN, text, _EXAMPLE, _assigned)
        if not partitions:
            raise ReadError(f"assign: no partition is named; expected JSON such as {_EXAMPLE}")
        return Selection(partitions=partitions)
    if name == SUBSCRIBE:
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise ReadError("subscribe: no topic is named; expected such as topicA,topicB")
        return Selection(topics=topics)
    if not text:
        raise ReadError("subscribePattern: the pattern is empty; expected such as orders-.*")
    try:
        re.compile(text)
    except re.error as error:
        raise ReadError(f"subscribePattern: {text!r} is not a regular expression: {error}") from None
    return Selection(pattern=text, includes_internal=includes_internal)


def _assigned(given: Mapping[str, Any]) -> tuple[TopicPartition, ...]:
    found = {(topic, partition) for topic, numbers in given.items() for partition in numbers}
    if any(type(partition) is not int or partition < 0 for _, partition in found):
        raise TypeError
    return tuple(sorted(found))
