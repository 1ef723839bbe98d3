"""Who leads now, for a client that asked the wrong broker (KIP-951, R34).

Owns which answers carry a hint and what is in it; the metadata is where it comes from. Must not know how answers are
encoded.
"""

from collections.abc import Iterable

from lamina.errors import ErrorCode, UnknownTopicOrPartition
from lamina.image.image import Image
from lamina.wire.leaders import CurrentLeader, NodeEndpoint

FIRST_PRODUCE_WITH_HINTS = 10
FIRST_FETCH_WITH_HINTS = 16

IN_PRODUCE = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER,))
IN_FETCH = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))


def current_leader(image: Image, topic: str, index: int) -> CurrentLeader | None:
    """The leader and its epoch; -1 for the leader of a partition that has none, ``None`` for no partition."""
    try:
        state = image.partition(topic, index)
    except UnknownTopicOrPartition:
        return None
    return CurrentLeader(state.leader, state.leader_epoch)


def node_endpoints(image: Image, leaders: Iterable[CurrentLeader], listener_name: str) -> tuple[NodeEndpoint, ...]:
    """Where clients of this listener find the leaders; one that is away or has no such listener is left out."""
    endpoints = []
    for broker_id in dict.fromkeys(leader.leader_id for leader in leaders):
        broker = image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoints.get(listener_name)
        if broker is not None and endpoint is not None:
            endpoints.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, broker.rack))
    return tuple(endpoints)
