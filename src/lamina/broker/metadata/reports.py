"""What a broker tells the controller of itself, each time it asks for changes.

Owns the form of a report, and what of it is still to be told: a fact is repeated until an image shows that the
controller has stored it, so that no controller's end loses one. Must not know how a report travels.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lamina.broker.metadata.applied import Applied
from lamina.broker.partitions.cluster import Cluster
from lamina.controller.election import LogEnd
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER
from lamina.image.topic import Partition as PartitionState
from lamina.store.values import dump, load
from lamina.topic_partition import TopicPartition

_TOPIC_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Report:
    is_ready: bool = False
    """Its logs are open: it may lead and follow."""
    is_draining: bool = False
    """It is about to stop: its leaders are to move away."""
    made: frozenset[TopicPartition] = frozenset()
    """Replicas for which it has made directories."""
    lost: frozenset[TopicPartition] = frozenset()
    """Replicas whose directories it had made, and does not find."""
    removed: frozenset[TopicPartition] = frozenset()
    """Replicas that others keep now, and of which it has deleted what it had."""
    offline: frozenset[TopicPartition] = frozenset()
    """Replicas that it cannot use."""
    deleted: frozenset[bytes] = frozenset()
    """Ids of topics that were deleted, and of which it has nothing any more."""
    ends: Mapping[TopicPartition, LogEnd] | None = None
    """After an unclean stop, how far its logs reach; ``None`` after a clean one."""


def encode_report(report: Report) -> bytes:
    message: dict[str, Any] = {
        "is_ready": report.is_ready,
        "is_draining": report.is_draining,
        "made": sorted(report.made),
        "lost": sorted(report.lost),
        "removed": sorted(report.removed),
        "offline": sorted(report.offline),
        "deleted": sorted(topic_id.hex() for topic_id in report.deleted),
        "ends": None if report.ends is None else [[*key, *end] for key, end in sorted(report.ends.items())],
    }
    return dump({name: value for name, value in message.items() if value not in (None, [], False)})


def parse_report(data: bytes) -> Report:
    """Raises ``ValueError`` for what is no report."""
    try:
        return _report(load(data))
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{error!r}") from None


def _report(message: Any) -> Report:
    ends = message.get("ends")
    return Report(
        is_ready=bool(message.get("is_ready", False)),
        is_draining=bool(message.get("is_draining", False)),
        made=_partitions(message.get("made", ())),
        lost=_partitions(message.get("lost", ())),
        removed=_partitions(message.get("removed", ())),
        offline=_partitions(message.get("offline", ())),
        deleted=frozenset(_topic_id(topic_id) for topic_id in message.get("deleted", ())),
        ends=None if ends is None else {_partition(*one[:2]): LogEnd(*map(int, one[2:])) for one in ends},
    )


def _partitions(value: Any) -> frozenset[TopicPartition]:
    return frozenset(_partition(name, index) for name, index in value)


def _partition(name: Any, index: Any) -> TopicPartition:
    if not isinstance(name, str) or not isinstance(index, int) or index < 0:
        raise ValueError(f"{name!r}, {index!r} is no partition")
    return name, index


def _topic_id(text: str) -> bytes:
    topic_id = bytes.fromhex(text)
    if len(topic_id) != _TOPIC_ID_BYTES:
        raise ValueError(f"{text!r} is no topic id")
    return topic_id


@dataclass(slots=True)
class OwnFacts:
    """What this broker has to tell. Facts come with what it did and go when the image has them."""

    cluster: Cluster
    is_ready: bool = False
    is_draining: bool = False
    ends: Mapping[TopicPartition, LogEnd] | None = None
    _made: dict[TopicPartition, bytes] = field(default_factory=dict)
    """With the id of the topic: another topic may have the name by the time it is told."""
    _lost: dict[TopicPartition, bytes] = field(default_factory=dict)
    _removed: dict[TopicPartition, bytes] = field(default_factory=dict)
    _deleted: set[bytes] = field(default_factory=set)
    _left: dict[TopicPartition, bytes] = field(default_factory=dict)
    """Of deleted topics, what may still be in failed directories: offline as long as the topic is there."""

    def did(self, applied: Applied, image: Image) -> None:
        """What this broker did when it applied an image."""
        self._made.update((key, image.topics[key[0]].id) for key in applied.made)
        self._lost.update((key, image.topics[key[0]].id) for key in applied.lost)
        self._removed.update((key, image.topics[key[0]].id) for key in applied.removed)
        for told in (self._lost, self._removed):
            for key in applied.made:
                told.pop(key, None)
        left = {topic_id for _, topic_id in applied.left}
        self._left.update(applied.left)
        self._deleted.update(topic.id for topic in applied.deleted if topic.id not in left)
        self._deleted.update(applied.deleted_before)

    def report(self, image: Image, offline: Collection[TopicPartition]) -> Report:
        """What an image does not show yet; ``offline`` is told whole, for it may also become less."""
        self._made = {key: of for key, of in self._made.items() if self._is_to_be_made(image, key, of)}
        self._lost = {key: of for key, of in self._lost.items() if self._is_made(image, key, of)}
        self._removed = {key: of for key, of in self._removed.items() if self._is_made(image, key, of)}
        self._deleted = {topic_id for topic_id in self._deleted if self._is_awaited(image, topic_id)}
        self._left = {key: of for key, of in self._left.items() if of in image.topic_names}
        if self.ends is not None:
            self.ends = {key: end for key, end in self.ends.items() if not self._is_end_answered(image, key)} or None
        return Report(
            is_ready=self.is_ready,
            is_draining=self.is_draining,
            made=frozenset(self._made),
            lost=frozenset(self._lost),
            removed=frozenset(self._removed),
            offline=frozenset(offline) | self._left.keys(),
            deleted=frozenset(self._deleted),
            ends=self.ends,
        )

    def _is_made(self, image: Image, key: TopicPartition, topic_id: bytes) -> bool:
        """Whether this broker counts as having a directory of a partition."""
        partition = _partition_of(image, key, topic_id)
        return partition is not None and self.cluster.node_id in partition.made_on

    def _is_to_be_made(self, image: Image, key: TopicPartition, topic_id: bytes) -> bool:
        """Whether it does not, and should: nobody waits for the directory of what others keep."""
        partition = _partition_of(image, key, topic_id)
        is_mine = partition is not None and self.cluster.node_id in partition.replicas
        return is_mine and not self._is_made(image, key, topic_id)

    def _is_awaited(self, image: Image, topic_id: bytes) -> bool:
        return topic_id in image.topic_names or self.cluster.node_id in image.deletions.get(topic_id, ())

    def _is_end_answered(self, image: Image, key: TopicPartition) -> bool:
        """Whether an election has taken the unclean stop into account. To the next controller it would be new again."""
        if not self.cluster.is_registered_in(image):
            return False
        topic = image.topics.get(key[0])
        if topic is None or key[1] >= len(topic.partitions):
            return True
        partition = topic.partitions[key[1]]
        return partition.leader != NO_LEADER or self.cluster.node_id not in partition.isr


def _partition_of(image: Image, key: TopicPartition, topic_id: bytes) -> PartitionState | None:
    """If it is in the image, as one of the same topic."""
    topic = image.topics.get(key[0])
    if topic is None or topic.id != topic_id or key[1] >= len(topic.partitions):
        return None
    return topic.partitions[key[1]]
