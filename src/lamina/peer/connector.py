"""From an address to a connection that may be used: the one place that knows how.

Owns the making of connections. Plain TCP is the one way that is built; TLS and SASL are other implementations of
`Connector`, which wrap the transport or speak SaslHandshake and SaslAuthenticate over `Connection.send` before they
return it. Must not know clusters.
"""

import asyncio
from typing import Protocol

from lamina.errors import NetworkError
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits


class Connector(Protocol):
    async def connect(self, address: Address, limits: Limits) -> Connection:
        """A connection whose other side knows who we are. Raises `KafkaError` or OSError."""


class PlainConnector:
    """TCP without encryption or login."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id

    async def connect(self, address: Address, limits: Limits) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(address, self._client_id, limits), address.host, address.port
        )
        return connection


async def open_connection(connector: Connector, address: Address, limits: Limits) -> Connection:
    """A connection that is ready for requests. Raises `KafkaError`: `NetworkError` where nobody answers in time."""
    try:
        async with asyncio.timeout(limits.connect_timeout_ms / 1000):
            connection = await connector.connect(address, limits)
            try:
                await connection.negotiate()
            except BaseException:
                connection.close()
                raise
            return connection
    except TimeoutError as error:
        raise NetworkError(f"{address} did not answer within {limits.connect_timeout_ms} ms") from error
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NetworkError(f"{address} cannot be reached ({reason})") from error
