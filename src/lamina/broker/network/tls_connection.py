"""A connection over TLS: the same, but bytes may be there that the loop does not tell of.

OpenSSL decrypts whole records: what a buffer had no room for is in no socket any more (S23). Must not know TLS itself.
"""

from lamina.broker.network.connection import Connection
from lamina.broker.network.tls_channel import TlsChannel


class TlsConnection(Connection):
    __slots__ = ()

    _channel: TlsChannel

    def _read_more(self) -> None:
        super()._read_more()
        self._read_on()

    def _readable(self) -> None:
        super()._readable()
        self._read_on()

    def _read_on(self) -> None:
        if self._is_reading and self._channel.has_unread:
            self._loop.call_soon(self._read_unread)

    def _read_unread(self) -> None:
        if self._is_reading and self._channel.has_unread:
            self._readable()
