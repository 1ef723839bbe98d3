"""Which listeners speak TLS, and with what: read at the start and again while the broker runs.

Owns the loading by name: a broker without TLS has nothing of it in memory. What cannot be used stops the start, and
changes nothing later. Must not know connections.
"""

import logging
from collections.abc import Callable

from lamina.broker.network.listener_tls import ListenerTls
from lamina.settings.listeners import Listener, listeners
from lamina.settings.ssl_stores import SslSettings, listener_ssl
from lamina.settings.values import BrokerSettings

logger = logging.getLogger(__name__)

INSTALL = 'TLS needs the package cryptography: pip install "lamina[security]" brings it'


class TlsError(Exception):
    """TLS that a listener cannot speak; the message is one sentence that names the listener."""


class TlsListeners:
    def __init__(self, settings: BrokerSettings, now_ms: Callable[[], int]) -> None:
        """Raises :class:`TlsError`."""
        self._now_ms = now_ms
        self._by_name = {
            listener.name: load(listener, found, now_ms())
            for listener in listeners(settings)
            if (found := listener_ssl(settings, listener)) is not None
        }

    def get(self, listener_name: str) -> ListenerTls | None:
        return self._by_name.get(listener_name)


def load(listener: Listener, settings: SslSettings, now_ms: int) -> ListenerTls:
    """Raises :class:`TlsError`."""
    try:
        from lamina.tls.server_identity import load_server_identity
        from lamina.tls.stores import StoreError
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cryptography":
            raise
        raise TlsError(f"listener {listener.name}: {INSTALL}") from None
    try:
        return ListenerTls(listener.name, load_server_identity(settings, now_ms))
    except StoreError as error:
        raise TlsError(f"listener {listener.name}: {error}") from None
