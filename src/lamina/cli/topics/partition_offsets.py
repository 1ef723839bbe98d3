"""Where partitions begin and end, asked of their leaders.

A broker that died leads until its session ends. Owns that nobody waits for such a leader longer than a moment: the
metadata is read once more, in case another one leads by now; what is still not known is left out, and told in one line
for each leader. Must not know how offsets are shown.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.cli.outcome import Attempts
from lamina.cli.topics.lookup import LATEST, Leader, Partition, current_leaders, describe_all
from lamina.client.cluster import BROKER_SECONDS, LEADER_MOVED, SILENT, UNANSWERED, Cluster, answer_of
from lamina.client.errors import ClientError, Refused

if TYPE_CHECKING:
    from confluent_kafka.admin import ListOffsetsResultInfo, TopicDescription

_NAMED = 10
"""Partitions that a line names; the others are counted."""


@dataclass(slots=True)
class _Answers:
    found: dict[Partition, "ListOffsetsResultInfo"] = field(default_factory=dict)
    silent: set[Partition] = field(default_factory=set)
    moved: set[Partition] = field(default_factory=set)


class PartitionOffsets:
    """Of one command: a leader that did not answer is not asked again."""

    def __init__(self, cluster: Cluster, attempts: Attempts) -> None:
        self._cluster = cluster
        self._attempts = attempts
        self._newer: dict[Partition, Leader] = {}
        """Leaders that were elected since topics were described."""
        self._silent: dict[Leader, set[Partition]] = {}
        self._moved: set[Partition] = set()

    @property
    def silent_brokers(self) -> frozenset[int]:
        return frozenset(leader.id for leader in self._silent)

    def find(self, topics: Sequence["TopicDescription"], at: int) -> Mapping[Partition, "ListOffsetsResultInfo"]:
        """At a time or at one of the three places. Without what could not be asked, or has no leader."""
        leaders = {
            (topic.name, one.id): Leader(int(one.leader.id), f"{one.leader.host}:{one.leader.port}")
            for topic in topics
            for one in topic.partitions
            if one.leader is not None and one.leader.id >= 0
        }
        leaders |= {key: leader for key, leader in self._newer.items() if key in leaders}
        answers = self._ask(leaders, at)
        again = answers.silent | answers.moved
        if again:
            now = current_leaders(self._cluster)
            elected = {key: now[key] for key in again if key in now and now[key] != leaders[key]}
            self._newer |= elected
            leaders |= elected
            # One that refused may be the leader after all: it had not heard of it.
            second = self._ask({key: leaders[key] for key in elected.keys() | answers.moved}, at)
            answers.found |= second.found
            self._moved |= second.moved
            for key in (answers.silent - elected.keys()) | second.silent:
                self._silent.setdefault(leaders[key], set()).add(key)
        return answers.found

    def at(self, partitions: Iterable[Partition], at: int) -> dict[Partition, int]:
        """At a time or at one of the places; -1 where no record is that late. Without what could not be asked."""
        wanted = set(partitions)
        topics = describe_all(self._cluster, sorted({topic for topic, _ in wanted}), self._attempts)
        return {key: found.offset for key, found in self.find(topics, at).items() if key in wanted}

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self.at(partitions, LATEST)

    def report(self) -> None:
        """Tell what is not known, and why."""
        for leader, partitions in self._silent.items():
            whose = "its leader" if len(partitions) == 1 else "their leader"
            silence = f"{whose}, broker {leader.id} at {leader.address}, does not answer"
            advice = "another is elected when its session ends, if one is in sync"
            self._attempts.fail(_names(partitions), ClientError(f"{silence}; {advice}"))
        if self._moved:
            self._attempts.fail(_names(self._moved), ClientError("a leader is being elected; try again in a moment"))

    def _ask(self, leaders: Mapping[Partition, Leader], at: int) -> _Answers:
        """One question to each leader, all at once: in a common one, a leader that is away would take others along."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        answers = _Answers()
        by_leader: defaultdict[Leader, list[Partition]] = defaultdict(list)
        for key, leader in leaders.items():
            if leader in self._silent:
                answers.silent.add(key)
            else:
                by_leader[leader].append(key)
        place = OffsetSpec(at)  # type: ignore[abstract]  # it makes one of its subclasses
        admin = self._cluster.admin()
        asked = [
            (leader, one, future)
            for leader, keys in by_leader.items()
            for one, future in admin.list_offsets(
                {TopicPartition(*key): place for key in keys}, request_timeout=BROKER_SECONDS
            ).items()
        ]
        self._cluster.await_brokers([(leader.id, future) for leader, _, future in asked])
        for _, one, future in asked:
            key = (one.topic, one.partition)
            try:
                offset = answer_of(future, 0) if future.done() else None
            except Refused as error:
                if error.name in SILENT:
                    answers.silent.add(key)
                elif error.name in LEADER_MOVED:
                    answers.moved.add(key)
                else:
                    self._attempts.fail(f"{one.topic}-{one.partition}", error)
            else:
                if offset is None or offset.offset == UNANSWERED:
                    answers.silent.add(key)
                else:
                    answers.found[key] = offset
        return answers


def _names(partitions: Iterable[Partition]) -> str:
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"
