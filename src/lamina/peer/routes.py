"""Which broker has a role, and the connection to it.

Owns the view of the cluster, its coordinators, and when they are asked for again: only for what was found to be wrong,
and once however many wait for it. Must not know retries.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from lamina.errors import MalformedResponse, NetworkError, error_from_code
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.target import AnyBroker, Broker, Controller, Coordinator, Leader, Target
from lamina.peer.view import ClusterView, with_broker, with_leader, with_metadata
from lamina.wire.api_keys import FIND_COORDINATOR, METADATA
from lamina.wire.leaders import CurrentLeader, NodeEndpoint

_METADATA_VERSIONS = range(7, 14)
_FIND_COORDINATOR_VERSIONS = range(1, 7)
"""Below 4 one key at a time, and one coordinator in the response itself: as brokers before Kafka 3.0 have it."""


class LeaderRoute(NamedTuple):
    """The way to the leader of a partition, and what it must be told to know that it is the one that is meant."""

    topic_id: UUID | None
    leader_epoch: int
    connection: Connection


class Routes:
    def __init__(self, bootstrap: tuple[Address, ...], connections: ConnectionPool) -> None:
        self._bootstrap = bootstrap
        self._connections = connections
        self._view = ClusterView()
        self._is_stale = True
        """Whether brokers and controller are to be asked for again."""
        self._stale_topics: set[str] = set()
        self._coordinators: dict[Coordinator, int] = {}
        self._asking = asyncio.Lock()
        """Held while metadata is asked for: whoever needs the same waits, and finds it. What is known needs no lock."""
        self._asking_coordinator = asyncio.Lock()

    @property
    def view(self) -> ClusterView:
        return self._view

    @property
    def has_connected(self) -> bool:
        """Whether any broker was ever reached."""
        return self._connections.has_connected

    async def close(self) -> None:
        await self._connections.close()

    # Finding

    async def connection_to(self, to: Target) -> Connection:
        """Raises `KafkaError`: what passes by itself is worth another attempt."""
        match to:
            case AnyBroker():
                return await self._to_any()
            case Leader(topic, partition):
                return (await self.leader(topic, partition)).connection
            case Coordinator():
                return await self._to_id(await self.coordinator_id(to))
            case Controller():
                await self._refresh_stale()
                return await self._to_id(self._view.controller_id)
            case Broker(broker_id):
                self._is_stale |= broker_id not in self._view.brokers
                await self._refresh_stale()
                return await self._to_id(broker_id)

    async def leaders(self, topic: str) -> Mapping[int, CurrentLeader]:
        """Of all partitions of a topic."""
        await self._know(topic)
        return self._view.topics[topic].leaders

    async def leader(self, topic: str, partition: int) -> LeaderRoute:
        await self._know(topic)
        leader = self._view.leader(topic, partition)
        topic_id = self._view.topics[topic].topic_id
        return LeaderRoute(topic_id, leader.leader_epoch, await self._to_id(leader.leader_id))

    async def _know(self, topic: str) -> None:
        if not self._is_known(topic):
            async with self._asking:
                if not self._is_known(topic):
                    await self._ask_metadata([topic])

    def _is_known(self, topic: str) -> bool:
        return topic in self._view.topics and topic not in self._stale_topics

    async def coordinator_id(self, of: Coordinator) -> int:
        if of not in self._coordinators:
            async with self._asking_coordinator:
                if of not in self._coordinators:
                    self._coordinators[of] = await self._find_coordinator(of)
        return self._coordinators[of]

    async def _find_coordinator(self, of: Coordinator) -> int:
        connection = await self._to_any()
        call = MessageCall(
            FIND_COORDINATOR,
            _FIND_COORDINATOR_VERSIONS,
            key_type=int(of.type),
            key=of.key,
            coordinator_keys=[of.key],
        )
        response = await connection.request(call)
        coordinators = getattr(response, "coordinators", (response,))
        if len(coordinators) != 1:
            raise MalformedResponse(f"{connection.address} did not name one coordinator")
        (found,) = coordinators
        if found.error_code:
            raise error_from_code(found.error_code, found.error_message or f"{of.key} has no coordinator")
        broker_id = int(found.node_id)
        self._view = with_broker(self._view, broker_id, Address(found.host, found.port))
        return broker_id

    async def refresh(self) -> None:
        """Ask for brokers and controller again."""
        self._is_stale = True
        await self._refresh_stale()

    # Learning

    def forget(self, to: Target) -> None:
        """What led to the wrong broker, or to a dead one."""
        match to:
            case Leader(topic, _):
                self._stale_topics.add(topic)
            case Coordinator():
                self._coordinators.pop(to, None)
            case Controller() | Broker():
                self._is_stale = True

    def take_hint(self, topic: str, partition: int, leader: CurrentLeader, endpoints: Sequence[NodeEndpoint]) -> bool:
        """Whether it was news."""
        known = self._view
        self._view = with_leader(known, topic, partition, leader, endpoints)
        return self._view is not known

    # Asking

    async def _to_any(self) -> Connection:
        return await self._connections.to_any((*self._view.brokers.values(), *self._bootstrap))

    async def _to_id(self, broker_id: int) -> Connection:
        address = self._view.brokers.get(broker_id)
        if address is None:
            raise NetworkError(f"the cluster has no broker {broker_id} now")
        return await self._connections.to(address)

    async def _refresh_stale(self) -> None:
        if self._is_stale:
            async with self._asking:
                if self._is_stale:
                    await self._ask_metadata([])

    async def _ask_metadata(self, topics: Sequence[str]) -> None:
        """Bring brokers, controller and these topics up to date. Raises the error of a topic."""
        connection = await self._to_any()
        response = await connection.request(metadata_call(topics))
        self._view, errors = with_metadata(self._view, response)
        self._is_stale = False
        self._stale_topics.difference_update(topics)
        for error in errors.values():
            raise error


def metadata_call(topics: Sequence[str] | None, *, creates_topics: bool = False) -> MessageCall:
    """Asks for brokers, controller and these topics, or all of them; topics that do not exist may be created."""
    return MessageCall(
        METADATA,
        _METADATA_VERSIONS,
        topics=None if topics is None else [{"topic_id": None, "name": name} for name in topics],
        allow_auto_topic_creation=creates_topics,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
