"""TLS handshakes before connections: many may wait, a few are done at a time, none for long.

Owns sockets until their handshake is over, and gives them to whoever accepted them. A stranger costs a descriptor and
no more until the whole first record of a handshake has come; other bytes end the connection without a word, for a
client that speaks no TLS would take an alert for the size of a response (S24). Signing keeps the loop busy, so that a
few are done in one turn (S21), those first that are under way, then one of each address. Those that wait and those
under way are bounded: when more come, one gives way that is among the oldest, of the address that has most; under way
it has had a tenth of a second. Must not know Kafka's protocol.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import islice

from lamina.broker.network.client_hello import EARLY_PAUSE_SECONDS, ClientHello, Hello
from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.network.refusal_lines import RefusalLines
from lamina.broker.network.secure_socket import SecureSocket
from lamina.broker.network.turns_by_address import TurnsByAddress

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
"""From the accept to the end of the handshake (S85)."""
MOST_UNDER_WAY = 256
PROTECTED_SECONDS = 0.1
_SWEEP_SECONDS = 0.1
_OLDEST_LOOKED_AT = 64
"""So many are compared when one has to give way."""
_TURN_SECONDS = 0.002

Done = Callable[[SecureSocket | None, str], None]
"""Told of the socket and the principal; of ``None`` where there is no connection, its socket closed."""


class _Handshake:
    __slots__ = (
        "accepted",
        "accepted_at",
        "address",
        "began_at",
        "done",
        "fd",
        "has_said_hello",
        "hello",
        "is_over",
        "peer",
        "secured",
        "tls",
    )

    def __init__(self, accepted: socket.socket, tls: ListenerTls, peer: str, done: Done, now: float) -> None:
        self.accepted = accepted
        self.fd = accepted.fileno()
        self.secured: SecureSocket | None = None
        self.tls = tls
        self.peer = peer
        self.address = peer.rpartition(":")[0]
        self.hello = ClientHello(accepted)
        self.has_said_hello = False
        self.done = done
        self.accepted_at = now
        self.began_at = 0.0
        self.is_over = False


class Handshakes:
    def __init__(self, loop: asyncio.AbstractEventLoop, most_waiting: int) -> None:
        """``most_waiting`` sockets before their handshake has begun."""
        self._loop = loop
        self._most_waiting = most_waiting
        self._open: dict[int, _Handshake] = {}
        """Accepted and not over, by descriptor, the oldest first."""
        self._of_address: Counter[str] = Counter()
        """How many of those come from where."""
        self._waiting: dict[_Handshake, None] = {}
        """Those that OpenSSL does not know yet, the oldest first."""
        self._under_way: dict[int, _Handshake] = {}
        """Those that OpenSSL knows, the oldest first."""
        self._coming: TurnsByAddress[_Handshake] = TurnsByAddress()
        """Those that wait for a place."""
        self._going: deque[_Handshake] = deque()
        """Those under way that can go on."""
        self._has_turn = False
        self._sweeping: asyncio.TimerHandle | None = None
        self._lines = RefusalLines(logger)
        self.completed: Counter[str] = Counter()
        """By listener."""
        self.failed: Counter[str] = Counter()
        """By listener; those that left before they said anything are not counted."""

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, accepted: socket.socket, tls: ListenerTls, peer: str, done: Done) -> None:
        if len(self._waiting) >= self._most_waiting:
            self.give_way()
        one = _Handshake(accepted, tls, peer, done, self._loop.time())
        self._open[one.fd] = one
        self._of_address[one.address] += 1
        self._waiting[one] = None
        self._watch(one)
        if self._sweeping is None:
            self._sweep_later()

    def give_way(self) -> bool:
        """Whether one that waits has made room for another."""
        if not self._waiting:
            return False
        self._fail(self._most_of(self._waiting), "its handshake has not begun, and others come")
        return True

    def _most_of(self, those: Iterable[_Handshake]) -> _Handshake:
        """Among the oldest the first of the address that has most; of those rather one that has said nothing."""
        oldest = islice(those, _OLDEST_LOOKED_AT)
        return max(oldest, key=lambda one: (self._of_address[one.address], not one.has_said_hello))

    # Turns of the loop

    def _watch(self, one: _Handshake) -> None:
        if not one.is_over:
            self._loop.add_reader(one.fd, self._look, one)

    def _look(self, one: _Handshake) -> None:
        found = one.hello.look()
        if found in (Hello.NONE, Hello.PART):
            return
        self._loop.remove_reader(one.fd)
        if found is Hello.WHOLE:
            one.has_said_hello = True
            self._coming.add(one.address, one)
            self._turn_later()
        elif found is Hello.EARLY:
            self._loop.call_later(EARLY_PAUSE_SECONDS, self._watch, one)
        elif found is Hello.NO_TLS:
            self._fail(one, "it speaks no TLS (security.protocol of the client: SSL or SASL_SSL)")
        else:
            self._end(one)

    def _turn_later(self) -> None:
        if not self._has_turn:
            self._has_turn = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._has_turn = False
        ends_at = self._loop.time() + _TURN_SECONDS
        while self._going or (self._coming and self._has_place()):
            one = self._going.popleft() if self._going else self._coming.take()
            if not one.is_over:
                self._step(one)
            if self._loop.time() >= ends_at:
                self._turn_later()
                return

    def _has_place(self) -> bool:
        if len(self._under_way) < MOST_UNDER_WAY:
            return True
        one = self._most_of(self._under_way.values())
        if self._loop.time() - one.began_at < PROTECTED_SECONDS:
            return False
        self._fail(one, "its handshake takes long, and others wait")
        return True

    def _step(self, one: _Handshake) -> None:
        try:
            if one.secured is None:
                one.secured = one.tls.wrap(one.accepted)
                one.began_at = self._loop.time()
                self._waiting.pop(one)
                self._under_way[one.fd] = one
            one.secured.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(one.fd, self._can_read, one)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(one.fd, self._can_write, one)
        except (OSError, ValueError) as error:
            self._fail(one, _reason(error))
        else:
            self._finish(one, one.secured)

    def _can_read(self, one: _Handshake) -> None:
        self._loop.remove_reader(one.fd)
        self._going.append(one)
        self._turn_later()

    def _can_write(self, one: _Handshake) -> None:
        self._loop.remove_writer(one.fd)
        self._going.append(one)
        self._turn_later()

    def _sweep_later(self) -> None:
        self._sweeping = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        overdue_since = self._loop.time() - HANDSHAKE_SECONDS
        for one in list(self._open.values()):
            if one.accepted_at > overdue_since:
                break
            self._fail(one, f"no handshake within {HANDSHAKE_SECONDS:g} s")
        if self._coming:
            self._turn_later()
        if self._open:
            self._sweep_later()

    # Ends

    def _finish(self, one: _Handshake, secured: SecureSocket) -> None:
        principal = one.tls.principal_of(secured.tls)
        if principal is None:
            self._fail(one, "no rule of ssl.principal.mapping.rules matches the name in its certificate")
            return
        self._forget(one)
        self.completed[one.tls.name] += 1
        one.done(secured, principal)

    def _fail(self, one: _Handshake, reason: str) -> None:
        self.failed[one.tls.name] += 1
        self._lines.say(f"{one.peer} was turned away by listener {one.tls.name}: {reason}", self._loop.time())
        self._end(one)

    def _end(self, one: _Handshake) -> None:
        self._loop.remove_reader(one.fd)
        self._loop.remove_writer(one.fd)
        self._forget(one)
        one.accepted.close()
        one.done(None, "")

    def _forget(self, one: _Handshake) -> None:
        one.is_over = True
        if self._open.pop(one.fd, None) is not None:
            self._of_address[one.address] -= 1
            if not self._of_address[one.address]:
                del self._of_address[one.address]
        self._waiting.pop(one, None)
        self._coming.discard(one.address, one)
        if self._under_way.pop(one.fd, None) is not None and self._coming:
            self._turn_later()

    def close(self) -> None:
        """End all that are left."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for one in list(self._open.values()):
            self._end(one)


def _reason(error: OSError | ValueError) -> str:
    """What OpenSSL says, in small letters; the name of nobody is in it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError):
        return "it ended the connection during the handshake"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)
