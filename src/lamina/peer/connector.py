"""From an address to a connection that may be used: the one place that knows how.

Owns the making of connections. Plain TCP is here; `tls` and `sasl` have other implementations of `Connector`, which
wrap the transport or log in before they return it. Must not know clusters.
"""

import asyncio
import os
import socket
from typing import Any, Protocol

from lamina.errors import KafkaError, NetworkError
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
            lambda: Connection(address, self._client_id, limits), sock=await connected_socket(address)
        )
        return connection


async def connected_socket(address: Address) -> socket.socket:
    """Connected to the first of a name's addresses that takes it.

    Raises the OSError of the last one; "refused" only where all of them refuse.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, where in await _resolved(address):
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.setblocking(False)
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(connecting, where)
            return connecting
        except OverflowError:
            connecting.close()
            raise OSError("it cannot be a port") from None
        except OSError as error:
            connecting.close()
            if failure is None or not isinstance(error, ConnectionRefusedError):
                # asyncio puts the address where the system's own word for the error belongs.
                failure = error if error.errno is None else OSError(error.errno, os.strerror(error.errno))
        except BaseException:
            connecting.close()
            raise
    raise failure or OSError("its name has no address")


async def _resolved(address: Address) -> list[Any]:
    """What `socket.getaddrinfo` gives; only a name needs a thread for it."""
    try:
        return socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except ValueError as error:
        raise OSError("it cannot be the name of a host") from error


async def is_refused(connector: Connector, address: Address, limits: Limits) -> bool:
    """Whether nothing listens at an address of a machine that is there."""
    try:
        async with asyncio.timeout(limits.connect_timeout_ms / 1000):
            connection = await connector.connect(address, limits)
    except ConnectionRefusedError:
        return True
    except (KafkaError, OSError):
        return False
    connection.close()
    return False


async def open_connection(connector: Connector, address: Address, limits: Limits) -> Connection:
    """A connection that is ready for requests. Raises `KafkaError`: `NetworkError` where no answer comes in time."""
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
    except OSError as error:
        raise NetworkError(f"{address} cannot be reached ({error.strerror or error})") from error
