"""What clients are told of a partition: who leads it, and which replicas can serve (R39).

Owns how a client's listener and brokers that are away change what it sees. Must not know how an answer is encoded.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.errors import ErrorCode
from lamina.image.image import Broker, Image
from lamina.image.topic import NO_LEADER, Topic

_NONE: frozenset[int] = frozenset()


class View(NamedTuple):
    """Who looks, and what at."""

    image: Image
    listener_name: str
    node_id: int
    offline: frozenset[int] = _NONE
    """Partitions of the topic that this broker cannot serve: it knows before the metadata does."""


class PartitionMetadata(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


def partition_metadata(
    view: View, topic: Topic, index: int, *, tells_listener: bool = True, live_only: bool = False
) -> PartitionMetadata:
    """A leader that clients of this listener cannot reach is none, and the error says why.

    ``tells_listener`` where the error may say that only the listener is missing; ``live_only`` for the first clients,
    which cannot stand replicas that are away.
    """
    image, state = view.image, topic.partitions[index]
    offline = tuple(broker_id for broker_id in state.replicas if not _is_online(view, broker_id, topic.name, index))
    leader = image.brokers.get(state.leader)
    replicas, isr = state.replicas, state.isr
    if live_only:
        replicas = _reachable(image.brokers, view.listener_name, replicas)
        isr = _reachable(image.brokers, view.listener_name, isr)
    if leader is None or (state.leader == view.node_id and index in view.offline):
        return PartitionMetadata(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, replicas, isr, offline)
    if view.listener_name not in leader.endpoints:
        error_code = ErrorCode.LISTENER_NOT_FOUND if tells_listener else ErrorCode.LEADER_NOT_AVAILABLE
        return PartitionMetadata(error_code, NO_LEADER, replicas, isr, offline)
    is_whole = (len(replicas), len(isr)) == (len(state.replicas), len(state.isr))
    error_code = ErrorCode.NONE if is_whole else ErrorCode.REPLICA_NOT_AVAILABLE
    return PartitionMetadata(error_code, state.leader, replicas, isr, offline)


def _is_online(view: View, broker_id: int, topic: str, index: int) -> bool:
    if broker_id == view.node_id and index in view.offline:
        return False
    return view.image.is_online(broker_id, topic, index)


def _reachable(brokers: Mapping[int, Broker], listener_name: str, replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one for one in replicas if one in brokers and listener_name in brokers[one].endpoints)
