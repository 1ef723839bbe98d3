"""A broker with a plain listener and some that speak TLS, and what clients need to reach them."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import uvloop

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.wire.api_keys import API_VERSIONS
from lamina.wire.codec import encode_request
from lamina.wire.versions import request_schema
from tests.broker.in_process import build
from tests.broker.in_thread import START_SECONDS, BrokerInThread
from tests.tls.certificates import LONG_AGO, Authority, Identity


class TlsBroker(BrokerInThread):
    """Listeners PLAINTEXT, SSL, and MUTUAL, which asks clients for certificates."""

    def __init__(self, directory: Path, authority: Authority, identity: Identity, **settings: str) -> None:
        directory.mkdir(exist_ok=True)
        self.authority = authority
        self.key_store = identity.pem(directory / "own.pem")
        self.trust_store = authority.pem(directory / "ca.pem")
        given = {
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust_store),
            "listener.name.mutual.ssl.client.auth": "required",
            "lamina.spark.master": "none",
            "group.initial.rebalance.delay.ms": "0",
            "lamina.admin.listeners": "",
            **settings,
        }
        super().__init__(directory / "data", uvloop.new_event_loop, **given)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Let the broker work until something is so."""

        async def look() -> None:
            while not holds():
                await asyncio.sleep(0.001)

        self.run(look())

    def port(self, listener: str) -> int:
        return next(one.port for one in self.started.bound if one.listener.name == listener)

    def address_of(self, listener: str) -> str:
        return f"127.0.0.1:{self.port(listener)}"

    def connect_plainly(self, listener: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port(listener)), timeout=START_SECONDS)

    def connect_to(self, listener: str, identity: Identity | None = None) -> ssl.SSLSocket:
        """A client of Python's own, which trusts the authority."""
        context = ssl.create_default_context(cadata=self.authority.certificates)
        if identity is not None:
            identity.cert.configure_cert(context)
        return context.wrap_socket(self.connect_plainly(listener), server_hostname="127.0.0.1")


class ExpiredBroker(TlsBroker):
    """Its certificate has expired, and it does not know: by its clock it is still the day before."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        behind_ns = SYSTEM_CLOCKS.wall_ns() - int((LONG_AGO - timedelta(hours=12)).timestamp() * 1e9)
        self.clocks = Clocks(lambda: SYSTEM_CLOCKS.wall_ns() - behind_ns, SYSTEM_CLOCKS.monotonic_ns)
        super().__init__(directory, authority, authority.issue("127.0.0.1", name="broker", until=LONG_AGO))


class Over:
    """One listener of a broker, as the raw client is given it."""

    def __init__(self, broker: TlsBroker, listener: str = "SSL", identity: Identity | None = None) -> None:
        self._broker, self._listener, self._identity = broker, listener, identity

    def connect(self) -> socket.socket:
        return self._broker.connect_to(self._listener, self._identity)


class Plainly:
    """One listener, without the TLS that it speaks."""

    def __init__(self, broker: TlsBroker, listener: str) -> None:
        self._broker, self._listener = broker, listener

    def connect(self) -> socket.socket:
        return self._broker.connect_plainly(self._listener)


def api_versions_request(correlation_id: int = 1) -> bytes:
    return bytes(encode_request(build(request_schema(API_VERSIONS, 0), {}), correlation_id, "test"))
