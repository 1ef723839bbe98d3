"""Connections over TLS.

Owns the handshake of a client: brokers are always verified, and by host name unless it is said otherwise. There is no
way back to a connection without TLS. Must not know where certificates come from.
"""

import asyncio
import ssl

from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.connector import connected_socket
from lamina.peer.limits import Limits
from lamina.peer.tls_failures import why_tls_failed


class TlsConnector:
    """TLS without login: the client is who its certificate says, if it has one."""

    def __init__(self, client_id: str, context: ssl.SSLContext) -> None:
        self._client_id = client_id
        self._context = context

    async def connect(self, address: Address, limits: Limits) -> Connection:
        connecting = await connected_socket(address)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(address, self._client_id, limits),
                sock=connecting,
                ssl=self._context,
                server_hostname=address.host,
                ssl_handshake_timeout=limits.connect_timeout_ms / 1000,
            )
        except (ssl.SSLError, ConnectionError) as error:
            connecting.close()
            raise why_tls_failed(address, error) from error
        except BaseException:
            connecting.close()
            raise
        return connection
