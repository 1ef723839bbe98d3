"""AlterPartition: a leader asks for another in-sync set, and the controller makes it or says why not (R53, R54).

Owns the checks, in Kafka's order. The broker epoch of each member is one of them, so that a request which was under way
while a broker restarted does not bring it in (R92). Whether this controller is active is not asked here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from lamina.controller.election import ElectionFacts, elect
from lamina.controller.reassignment import complete
from lamina.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    StaleBrokerEpoch,
)
from lamina.image.changes import set_partitions
from lamina.image.image import Image
from lamina.image.topic import Partition, Topic
from lamina.topic_partition import TopicPartition

UNCHECKED = -1
"""A broker epoch that its sender does not know."""


class BrokerState(NamedTuple):
    """A member of an in-sync set, as its leader knows it."""

    broker_id: int
    broker_epoch: int = UNCHECKED


@dataclass(frozen=True, slots=True)
class InSyncRequest:
    """What a leader asks for one partition, and which state of it it has seen."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[BrokerState, ...]
    is_recovering: bool = False

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(member.broker_id for member in self.isr)


InSyncRequests = Mapping[tuple[bytes, int], InSyncRequest]
"""By topic id and partition index."""


def alter_partitions(
    image: Image, broker_id: int, broker_epoch: int, requests: InSyncRequests, facts: ElectionFacts
) -> tuple[Image, dict[tuple[bytes, int], Partition | KafkaError]]:
    """The image with all changes that can be made, and for each request the state it led to or its error.

    Raises StaleBrokerEpoch for a sender that is not registered in this epoch.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        raise StaleBrokerEpoch(f"broker {broker_id} is not registered in epoch {broker_epoch}")
    changed: dict[TopicPartition, Partition] = {}
    errors: dict[tuple[bytes, int], KafkaError] = {}
    for (topic_id, index), request in requests.items():
        try:
            topic = image.topic_with_id(topic_id)
            current = image.partition(topic.name, index)
            altered = _altered(image, broker_id, topic, index, current, request)
        except KafkaError as error:
            errors[topic_id, index] = error
            continue
        key = (topic.name, index)
        # A leader that is about to stop may have found its successor, and a reassignment its end (R51).
        elected = elect(image, key, altered, facts) if broker.is_draining else altered
        elected = complete(image, key, elected, facts)
        if elected is not current:
            changed[key] = elected
        if elected.leader != broker_id:
            errors[topic_id, index] = NewLeaderElected(f"{topic.name}-{index} is led by broker {elected.leader} now")
    image = set_partitions(image, changed) if changed else image
    return image, {
        (topic_id, index): errors.get((topic_id, index)) or image.topics[image.topic_names[topic_id]].partitions[index]
        for topic_id, index in requests
    }


def _altered(
    image: Image, broker_id: int, topic: Topic, index: int, current: Partition, request: InSyncRequest
) -> Partition:
    """The partition as its leader wants it; the same one if it is so already."""
    what = f"{topic.name}-{index}"
    if request.leader_epoch > current.leader_epoch or request.partition_epoch > current.partition_epoch:
        raise NotController(f"{what} is in a later epoch at its leader: this controller may have been replaced")
    if request.leader_epoch < current.leader_epoch:
        raise FencedLeaderEpoch(f"{what} is in leader epoch {current.leader_epoch}, not {request.leader_epoch}")
    if broker_id != current.leader:
        raise InvalidRequest(f"{what} is led by broker {current.leader}, not {broker_id}")
    if request.ids == frozenset(current.isr) and request.is_recovering == current.is_recovering:
        return current
    if request.partition_epoch < current.partition_epoch:
        raise InvalidUpdateVersion(
            f"{what} is in partition epoch {current.partition_epoch}, not {request.partition_epoch}"
        )
    _check_members(current, broker_id, what, request)
    _check_recovery(current, what, request)
    for member in request.isr:
        _check_eligible(image, (topic.name, index), member, is_leader=member.broker_id == broker_id)
    isr = tuple(one for one in current.replicas if one in request.ids)
    return replace(current, isr=isr, is_recovering=request.is_recovering)


def _check_members(current: Partition, leader: int, what: str, request: InSyncRequest) -> None:
    if not request.ids <= set(current.replicas):
        raise InvalidRequest(
            f"the in-sync set of {what} would have members that keep no replica: {sorted(request.ids)}"
        )
    if len(request.ids) != len(request.isr):
        raise InvalidRequest(f"the in-sync set of {what} names a broker twice")
    if leader not in request.ids:
        raise InvalidRequest(f"the in-sync set of {what} would be without its leader")


def _check_recovery(current: Partition, what: str, request: InSyncRequest) -> None:
    """After an unclean election the leader alone says that it goes on, and then others may follow it (R46)."""
    if request.is_recovering and not current.is_recovering:
        raise InvalidRequest(f"{what} has recovered and cannot go back")
    if request.is_recovering and len(request.isr) > 1:
        raise InvalidRequest(f"{what} recovers, and nobody but its leader can be in sync")


def _check_eligible(image: Image, key: TopicPartition, member: BrokerState, *, is_leader: bool) -> None:
    """A member must be online and the broker that the leader saw; a leader may drain while nobody else can lead."""
    broker = image.brokers.get(member.broker_id)
    name, index = key
    if broker is None or key in broker.offline:
        raise IneligibleReplica(f"broker {member.broker_id} cannot use its replica of {name}-{index}")
    if broker.is_draining and not is_leader:
        raise IneligibleReplica(f"broker {member.broker_id} is about to stop")
    if member.broker_epoch not in (UNCHECKED, broker.epoch):
        raise IneligibleReplica(f"broker {member.broker_id} is in epoch {broker.epoch}, not {member.broker_epoch}")
