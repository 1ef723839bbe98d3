"""Connections to the controller's broker, wherever that is now.

Owns them by lane, as a broker answers one connection in order: what must not wait behind a long poll has a lane of its
own. Where the controller is comes from the store, for a broker that starts has no image yet. Must not know what is
asked.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lamina.errors import NetworkError, NotController
from lamina.image.image import Broker
from lamina.peer.addresses import Address
from lamina.peer.call import Call
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.connector import Connector, PlainConnector
from lamina.peer.limits import Limits

T = TypeVar("T")


class ControllerLink:
    def __init__(
        self,
        node_id: int,
        controller: Callable[[], Broker | None],
        moved: Callable[[], asyncio.Event],
        listener_name: str,
        limits: Limits,
        connector_for: Callable[[str], Connector] = PlainConnector,
    ) -> None:
        """``moved`` is set when the controller is another one. ``connector_for`` is given a lane's client id."""
        self._node_id = node_id
        self._controller = controller
        self._moved = moved
        self._listener_name = listener_name
        self._limits = limits
        self._connector_for = connector_for
        self._pools: dict[str, ConnectionPool] = {}

    async def ask(self, call: Call[T], lane: str) -> T:
        """The controller's response; errors in it are the caller's to read. Raises `KafkaError` where none comes.

        One that is replaced meanwhile is not waited for: it may be paused, or cut off.
        """
        asking = asyncio.ensure_future(self._ask(call, lane))
        moved = asyncio.ensure_future(self._moved().wait())
        try:
            await asyncio.wait({asking, moved}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise NotController("another controller was elected meanwhile")
            return asking.result()
        finally:
            asking.cancel()
            moved.cancel()

    def is_connected(self, broker: Broker) -> bool:
        """Whether a connection to this broker is open, in whichever lane."""
        address = self._address(broker)
        return address is not None and any(pool.is_connected(address) for pool in self._pools.values())

    def _address(self, broker: Broker) -> Address | None:
        endpoint = broker.endpoints.get(self._listener_name)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    async def _ask(self, call: Call[T], lane: str) -> T:
        broker = self._controller()
        address = None if broker is None else self._address(broker)
        if address is None:
            raise NetworkError("no controller is elected now")
        pool = self._pools.get(lane)
        if pool is None:
            connector = self._connector_for(f"broker-{self._node_id}-{lane}")
            pool = self._pools[lane] = ConnectionPool(connector, self._limits)
        connection = await pool.to(address)
        return await connection.request(call)

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()
