"""HTTPS's sockets: who connects is counted at once, and has its handshake when it has said hello.

Owns connections from the accept to the end of the handshake. There are few places, of which those that are served take
some; when all are taken, the oldest that has no handshake yet gives way, of the address that has most. One handshake
begins in a turn of the loop. Each has the certificate that is shown by then. Must not know HTTP.
"""

import asyncio
import logging
import resource
import socket
from collections import deque
from collections.abc import Callable, Sequence

from lamina.broker.network.client_hello import EARLY_PAUSE_SECONDS, ClientHello, Hello
from lamina.broker.network.handshakes import HANDSHAKE_SECONDS
from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.network.listening import connection_descriptors
from lamina.broker.network.refusal_lines import RefusalLines

logger = logging.getLogger(__name__)

_ACCEPTS_AT_A_TIME = 16
_PAUSE_SECONDS = 0.1
"""Until the next one is accepted where no descriptor was left."""


class _Coming:
    __slots__ = ("accepted", "address", "deadline", "hello", "task")

    def __init__(self, accepted: socket.socket, address: str) -> None:
        self.accepted = accepted
        self.address = address
        self.hello = ClientHello(accepted)
        self.deadline: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        """Its handshake."""


class SecuredSockets:
    def __init__(
        self,
        sockets: Sequence[socket.socket],
        tls: ListenerTls,
        protocol: Callable[[], asyncio.Protocol],
        most: int,
        served: Callable[[], int],
    ) -> None:
        """``most`` connections in all, of which ``served`` says how many are served, those of others included."""
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._tls = tls
        self._protocol = protocol
        self._most = most
        self._served = served
        self._descriptors = connection_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._coming: dict[_Coming, None] = {}
        """The oldest first."""
        self._ready: deque[_Coming] = deque()
        """Those that have said hello."""
        self._has_turn = False
        self._is_over = False
        self._lines = RefusalLines(logger)
        for one in sockets:
            self._loop.add_reader(one.fileno(), self._accept, one)

    def __len__(self) -> int:
        """How many are between the accept and the end of the handshake."""
        return len(self._coming)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_AT_A_TIME):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.error("a connection to the admin listener could not be accepted: %s", error.strerror)
                self._loop.remove_reader(listening.fileno())
                self._loop.call_later(_PAUSE_SECONDS, self._resume, listening)
                return
            reason = self._reason_to_refuse(accepted)
            if reason:
                self._say(address[0], reason)
                accepted.close()
            else:
                self._take(accepted, address[0])

    def _resume(self, listening: socket.socket) -> None:
        if not self._is_over:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _reason_to_refuse(self, accepted: socket.socket) -> str:
        if accepted.fileno() >= self._descriptors:
            return "the last descriptors are kept for the logs"
        if self._served() + len(self._coming) < self._most:
            return ""
        if not self._coming:
            return f"{self._most} connections are open already"
        held: dict[str, int] = {}
        for one in self._coming:
            held[one.address] = held.get(one.address, 0) + 1
        oldest = max(self._coming, key=lambda one: held[one.address])
        self._say(oldest.address, f"it has no handshake yet, and more than {self._most} connections are open")
        self._end(oldest)
        return ""

    def _say(self, address: str, reason: str) -> None:
        self._lines.say(f"{address} was turned away by the admin listener: {reason}", self._loop.time())

    def _take(self, accepted: socket.socket, address: str) -> None:
        accepted.setblocking(False)
        one = _Coming(accepted, address)
        one.deadline = self._loop.call_later(HANDSHAKE_SECONDS, self._end, one)
        self._coming[one] = None
        self._watch(one)

    def _watch(self, one: _Coming) -> None:
        if one in self._coming:
            self._loop.add_reader(one.accepted.fileno(), self._look, one)

    def _look(self, one: _Coming) -> None:
        found = one.hello.look()
        if found in (Hello.NONE, Hello.PART):
            return
        self._loop.remove_reader(one.accepted.fileno())
        if found is Hello.EARLY:
            self._loop.call_later(EARLY_PAUSE_SECONDS, self._watch, one)
        elif found is Hello.WHOLE:
            self._ready.append(one)
            self._turn_later()
        else:
            self._end(one)

    def _turn_later(self) -> None:
        if not self._has_turn:
            self._has_turn = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Begin one handshake, which signs in the next turn."""
        self._has_turn = False
        while self._ready:
            one = self._ready.popleft()
            if one in self._coming:
                one.task = self._loop.create_task(self._handshake(one))
                break
        if self._ready:
            self._turn_later()

    async def _handshake(self, one: _Coming) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._protocol,
                one.accepted,
                ssl=self._tls.identity.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except OSError as error:
            self._say(one.address, f"its handshake has failed: {error}")
            one.accepted.close()
        finally:
            self._forget(one)

    def _forget(self, one: _Coming) -> None:
        self._coming.pop(one, None)
        if one.deadline is not None:
            one.deadline.cancel()

    def _end(self, one: _Coming) -> None:
        self._forget(one)
        if one.task is not None:
            one.task.cancel()
        else:
            self._loop.remove_reader(one.accepted.fileno())
            one.accepted.close()

    def close(self) -> None:
        """Accept no more, and end those that have no handshake yet."""
        self._is_over = True
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
        for one in list(self._coming):
            self._end(one)
