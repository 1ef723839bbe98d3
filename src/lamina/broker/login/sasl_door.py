"""The doors of listeners with SASL: what their connections share until their clients have logged in.

Owns which listeners have one, and what it is made of. Must not know what is said on a connection.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lamina.broker.counters import Counters
from lamina.broker.login.mechanisms import ScramUsers, TokenKeys, new_servers
from lamina.broker.login.sasl_service import LoggingIn, SaslService
from lamina.broker.login.strangers import Strangers
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.router import Router
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.security.sasl import SaslServer
from lamina.settings.listeners import listeners
from lamina.settings.network import SOCKET_REQUEST_MAX_BYTES
from lamina.settings.sasl import LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS, SASL_SERVER_MAX_RECEIVE_SIZE
from lamina.settings.sasl_listeners import SaslListener, sasl_listener
from lamina.settings.values import BrokerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslDoor:
    listener: SaslListener
    new_server: Mapping[str, Callable[[], SaslServer]] = field(repr=False)
    """How a login begins, by mechanism; some know passwords."""
    router: Router
    strangers: Strangers
    max_frame_bytes: int
    """Of a client that has logged in."""
    counters: Counters
    clocks: Clocks
    loop: asyncio.AbstractEventLoop

    def service(self) -> SaslService:
        """What serves one more connection."""
        return SaslService(
            self.listener,
            self.new_server,
            self.router,
            self.strangers,
            self.max_frame_bytes,
            self.counters,
            self.clocks,
            self.loop,
        )

    def opened(self, connection: LoggingIn) -> None:
        """It is served from now on."""
        connection.limit_frames(self.listener.max_receive_bytes, SASL_SERVER_MAX_RECEIVE_SIZE.name)
        self.strangers.came(connection)


class SaslDoors:
    """The doors of a broker's listeners, and the keys of tokens that they share."""

    def __init__(
        self,
        settings: BrokerSettings,
        metadata: Metadata,
        login_secret: bytes,
        router: Router,
        counters: Counters,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Raises :class:`LoginError`."""
        strangers = Strangers(loop, settings[LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS])
        scram_users = ScramUsers(metadata, login_secret)
        self._token_keys = TokenKeys(threads, clocks, loop)
        self.by_listener: dict[str, SaslDoor] = {}
        for one in listeners(settings):
            listener = sasl_listener(settings, one)
            if listener is not None:
                self.by_listener[one.name] = SaslDoor(
                    listener=listener,
                    new_server=new_servers(listener, scram_users, self._token_keys),
                    router=router,
                    strangers=strangers,
                    max_frame_bytes=settings[SOCKET_REQUEST_MAX_BYTES],
                    counters=counters,
                    clocks=clocks,
                    loop=loop,
                )

    def start(self) -> None:
        """Keep the keys of tokens fresh."""
        self._token_keys.start()

    async def stop(self) -> None:
        await self._token_keys.stop()
