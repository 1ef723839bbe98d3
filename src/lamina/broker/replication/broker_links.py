"""Connections to the other brokers of the cluster, on the listener that brokers speak to each other through.

Owns them by broker and lane. A broker answers one connection in order, so what must not wait behind a long poll has a
lane of its own. A broker that comes back, at another address or as another registration, gets new connections. Where
brokers are is asked of the image each time. Must not know what is asked, nor serve requests to this broker itself.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from lamina.broker.tasks import Tasks
from lamina.errors import NetworkError
from lamina.image.image import Image
from lamina.peer.addresses import Address
from lamina.peer.call import Call
from lamina.peer.connection import FollowUp
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.connector import Connector, PlainConnector
from lamina.peer.limits import Limits
from lamina.settings.replication import REPLICA_SOCKET_TIMEOUT_MS
from lamina.settings.values import BrokerSettings

T = TypeVar("T")


class AskBroker(Protocol):
    async def __call__(self, broker_id: int, call: Call[T], lane: str = "", follow_up: FollowUp[T] | None = None) -> T:
        """The response of a broker. Raises `KafkaError` where none comes; errors in it are the caller's to read.

        With ``follow_up`` it is the last of several, which is any one after the metadata has changed.
        """


def link_limits(settings: BrokerSettings) -> Limits:
    return Limits(request_timeout_ms=settings[REPLICA_SOCKET_TIMEOUT_MS])


class _Link(NamedTuple):
    address: Address
    broker_epoch: int
    pool: ConnectionPool


class BrokerLinks:
    def __init__(
        self,
        node_id: int,
        image: Callable[[], Image],
        listener_name: str,
        limits: Limits,
        connector_for: Callable[[str], Connector] = PlainConnector,
    ) -> None:
        """``connector_for`` is given the client id that a lane goes by."""
        self._node_id = node_id
        self._image = image
        self._listener_name = listener_name
        self._limits = limits
        self._connector_for = connector_for
        self._links: dict[tuple[int, str], _Link] = {}
        self._closing = Tasks()
        self._is_closed = False

    async def ask(self, broker_id: int, call: Call[T], lane: str = "", follow_up: FollowUp[T] | None = None) -> T:
        """The response of a broker. Raises `KafkaError` where none comes; errors in it are the caller's to read."""
        if self._is_closed:
            raise NetworkError(f"this broker stops: broker {broker_id} is not asked any more")
        image = self._image()
        link = self._link(image, broker_id, lane)
        connection = await link.pool.to(link.address)
        # The image may be another one since the link was looked up.
        return await connection.request(call, None if follow_up is None else self._while_it_is(image, follow_up))

    def _while_it_is(self, image: Image, follow_up: FollowUp[T]) -> FollowUp[T]:
        """Where the broker is has to be asked again once the image is another one."""
        return lambda response: follow_up(response) if self._image() is image else None

    def _link(self, image: Image, broker_id: int, lane: str) -> _Link:
        broker = image.brokers.get(broker_id)
        known = self._links.get((broker_id, lane))
        if broker is None:
            raise NetworkError(f"broker {broker_id} is not in the cluster now")
        endpoint = broker.endpoints.get(self._listener_name)
        if endpoint is None:
            raise NetworkError(f"broker {broker_id} has no listener {self._listener_name}")
        address = Address(endpoint.host, endpoint.port)
        if known is not None and (known.address, known.broker_epoch) == (address, broker.epoch):
            return known
        if known is not None:
            self._close_later(known)
        connector = self._connector_for(f"broker-{self._node_id}-{lane}" if lane else f"broker-{self._node_id}")
        link = self._links[broker_id, lane] = _Link(address, broker.epoch, ConnectionPool(connector, self._limits))
        return link

    def forget(self, broker_id: int, lane: str) -> None:
        """Close a lane that nobody needs any more."""
        link = self._links.pop((broker_id, lane), None)
        if link is not None:
            self._close_later(link)

    def image_changed(self) -> None:
        """Close the connections to brokers that are gone: their sockets may never say so."""
        brokers = self._image().brokers
        for broker_id, lane in list(self._links):
            if broker_id not in brokers:
                self.forget(broker_id, lane)

    def _close_later(self, link: _Link) -> None:
        self._closing.begin(link.pool.close())

    async def close(self) -> None:
        """Whoever waits for a response is told that there will be none."""
        self._is_closed = True
        for broker_id, lane in list(self._links):
            self.forget(broker_id, lane)
        await asyncio.gather(*self._closing)
