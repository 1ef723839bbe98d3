"""Handshakes that are slow, many or none: bounded in number and time, on a loop that a test turns (S21, S24, S85)."""

import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, cast

import pytest

from lamina.broker.network import handshakes
from lamina.broker.network.client_hello import EARLY_PAUSE_SECONDS
from lamina.broker.network.handshakes import HANDSHAKE_SECONDS, PROTECTED_SECONDS, Handshakes
from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.network.secure_socket import SecureSocket
from lamina.settings.ssl_stores import KeyStoreSource
from lamina.tls.server_identity import load_server_identity
from tests.tls.certificates import Authority
from tests.tls.test_contexts import SETTINGS

AUTHORITY = Authority()
OWN = AUTHORITY.issue("localhost")


class Loop:
    """Time stands still until a test moves it; sockets are real."""

    def __init__(self) -> None:
        self.now = 100.0
        self.turns = 0
        self._selector = selectors.DefaultSelector()
        self._ready: dict[tuple[int, int], tuple[Callable[..., None], tuple[Any, ...]]] = {}
        self._soon: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._later: list[tuple[float, Callable[..., None], list[bool]]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., None], *args: Any) -> None:
        self._soon.append((callback, args))

    def call_later(self, seconds: float, callback: Callable[..., None], *args: Any) -> "Loop.Handle":
        handle = Loop.Handle()
        self._later.append((self.now + seconds, partial(callback, *args), handle.state))
        return handle

    class Handle:
        def __init__(self) -> None:
            self.state = [True]

        def cancel(self) -> None:
            self.state[0] = False

    def add_reader(self, fd: int, callback: Callable[..., None], *args: Any) -> None:
        self._ready[fd, selectors.EVENT_READ] = (callback, args)

    def add_writer(self, fd: int, callback: Callable[..., None], *args: Any) -> None:
        self._ready[fd, selectors.EVENT_WRITE] = (callback, args)

    def remove_reader(self, fd: int) -> None:
        self._ready.pop((fd, selectors.EVENT_READ), None)

    def remove_writer(self, fd: int) -> None:
        self._ready.pop((fd, selectors.EVENT_WRITE), None)

    def turn(self) -> bool:
        """Everything that is ready now, and nothing that this makes ready. Returns whether there was any."""
        self.turns += 1
        due = [one for one in self._later if one[0] <= self.now]
        self._later = [one for one in self._later if one[0] > self.now]
        calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        calls += [(callback, ()) for _, callback, state in due if state[0]]
        soon, self._soon = self._soon, []
        calls += soon
        for (fd, event), call in list(self._ready.items()):
            with selectors.DefaultSelector() as selector:
                selector.register(fd, event)
                if selector.select(0):
                    calls.append(call)
        for callback, args in calls:
            callback(*args)
        return bool(calls)

    def run(self) -> None:
        while self.turn():
            pass

    def pass_time(self, seconds: float) -> None:
        """In steps, as timers need it."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(self.now + 0.25, until)
            self.run()


class Scene:
    def __init__(self, most_waiting: int = 1000) -> None:
        self.loop = Loop()
        self.handshakes = Handshakes(cast(Any, self.loop), most_waiting)
        source = KeyStoreSource("PEM", key=OWN.key(), certificate_chain=OWN.chain)
        given = replace(SETTINGS, key_store=source)
        self.tls = ListenerTls("SECURE", load_server_identity(given, int(time.time() * 1000)))
        self.outcomes: list[tuple[SecureSocket | None, str]] = []
        self._sockets: list[socket.socket] = []

    def connect(self, peer: str = "stranger:1") -> socket.socket:
        """A stranger; returns its side."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._sockets.append(theirs)
        self.handshakes.begin(ours, self.tls, peer, lambda *outcome: self.outcomes.append(outcome))
        return theirs

    def client(self, peer: str = "stranger:1") -> ssl.SSLSocket:
        """A stranger that has begun a handshake."""
        context = ssl.create_default_context(cadata=AUTHORITY.certificates)
        secured = context.wrap_socket(self.connect(peer), server_hostname="localhost", do_handshake_on_connect=False)
        self._sockets.append(secured)
        with pytest.raises(ssl.SSLWantReadError):
            secured.do_handshake()
        return secured

    def close(self) -> None:
        self.handshakes.close()
        for one in self._sockets:
            one.close()
        for secured, _ in self.outcomes:
            if secured is not None:
                secured.close()


def hello() -> bytes:
    """The first that a client says, whole."""
    to_server = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), to_server, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return to_server.read()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def is_closed(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_whole_handshake(scene: Scene) -> None:
    client = scene.client()
    scene.loop.run()
    client.do_handshake()
    scene.loop.run()
    ((secured, principal),) = scene.outcomes
    assert secured is not None
    assert principal == "User:ANONYMOUS"
    assert len(scene.handshakes) == 0
    assert scene.handshakes.completed == {"SECURE": 1}


@pytest.mark.parametrize("said", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_one_that_says_nothing_or_stops_ends_after_ten_seconds(scene: Scene, said: bytes) -> None:
    """S85."""
    stranger = scene.connect()
    stranger.send(said)
    scene.loop.pass_time(HANDSHAKE_SECONDS - 0.5)
    assert not scene.outcomes
    scene.loop.pass_time(1)
    assert scene.outcomes == [(None, "")]
    assert is_closed(stranger)
    assert scene.handshakes.failed == {"SECURE": 1}


def test_one_that_says_nothing_costs_no_tls(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(_: socket.socket) -> SecureSocket:
        raise AssertionError

    monkeypatch.setattr(scene.tls, "wrap", wrap)
    for _ in range(100):
        scene.connect()
    scene.loop.run()
    assert len(scene.handshakes) == 100


@pytest.mark.parametrize("said", [b"\x00\x00\x00\x10", b"GET / HTTP/1.1\r\n", b"\x15\x03"])
def test_what_begins_no_handshake_is_closed_without_a_byte(
    scene: Scene, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """S24."""
    stranger = scene.connect()
    stranger.send(said)
    scene.loop.run()
    assert scene.outcomes == [(None, "")]
    assert is_closed(stranger)
    assert "stranger:1 was turned away by listener SECURE: it speaks no TLS" in caplog.text


def test_one_that_goes_before_it_says_anything_is_no_failure(scene: Scene) -> None:
    """So do those that look whether a port is open."""
    scene.connect().close()
    scene.loop.run()
    assert scene.outcomes == [(None, "")]
    assert not scene.handshakes.failed


def test_one_that_goes_as_its_handshake_begins_is_forgotten_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.client().close()
    scene.loop.pass_time(HANDSHAKE_SECONDS + 1)
    assert scene.outcomes == [(None, "")]
    assert len(scene.handshakes) == 0
    assert "it ended the connection during the handshake" in caplog.text


def test_a_client_that_cannot_be_spoken_with_is_told_so(scene: Scene) -> None:
    """By an alert, which has left before the end."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificates)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384")
    client = context.wrap_socket(scene.connect(), server_hostname="localhost", do_handshake_on_connect=False)
    told = None
    while told is None:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            scene.loop.run()
        except ssl.SSLError as error:
            told = error.reason
    assert told == "SSLV3_ALERT_HANDSHAKE_FAILURE"
    assert scene.outcomes == [(None, "")]
    client.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_handshake_goes_on_where_the_client_takes_little_at_a_time(scene: Scene, version: ssl.TLSVersion) -> None:
    ours = scene.connect()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    context = ssl.create_default_context(cadata=AUTHORITY.certificates)
    context.maximum_version = version
    to_us, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_us, to_server, server_hostname="localhost")
    while not scene.outcomes:
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        if to_server.pending:
            ours.send(to_server.read())
        scene.loop.run()
        with suppress(BlockingIOError):
            to_us.write(ours.recv(100))
    ((secured, _),) = scene.outcomes
    assert secured is not None
    assert secured.tls.version() == version.name.replace("_", ".")


def test_few_are_done_in_a_turn_of_the_loop(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """S21: each takes most of a millisecond, which the loop has for others in between."""
    wrap = scene.tls.wrap

    def slowly(accepted: socket.socket) -> SecureSocket:
        scene.loop.now += 0.001
        return wrap(accepted)

    monkeypatch.setattr(scene.tls, "wrap", slowly)
    for _ in range(20):
        scene.client()
    under_way: list[int] = []
    while scene.loop.turn():
        under_way.append(len(scene.handshakes._under_way))
    assert max(after - before for before, after in pairwise(under_way)) == 2
    assert under_way[-1] == 20


def test_when_too_many_are_under_way_the_oldest_gives_way_but_not_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "MOST_UNDER_WAY", 3)
    slow = [scene.client() for _ in range(3)]
    scene.loop.run()
    client = scene.client()
    scene.loop.run()
    assert not scene.outcomes
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    scene.loop.pass_time(PROTECTED_SECONDS + 0.25)
    assert scene.outcomes == [(None, "")]
    with pytest.raises(OSError):  # noqa: PT011
        slow[0].do_handshake()
    client.do_handshake()
    scene.loop.run()
    assert [secured is not None for secured, _ in scene.outcomes] == [False, True]


def test_one_that_ends_makes_place_for_the_next(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_UNDER_WAY", 1)
    first, second = scene.client(), scene.client()
    scene.loop.run()
    first.do_handshake()
    scene.loop.run()
    second.do_handshake()
    scene.loop.run()
    assert len(scene.outcomes) == 2


@pytest.mark.parametrize("end", [1, 4, 5, 100, -1])
def test_a_place_is_given_for_a_whole_hello_only(scene: Scene, monkeypatch: pytest.MonkeyPatch, end: int) -> None:
    """A byte costs a stranger nothing: it must take nothing from others."""
    monkeypatch.setattr(handshakes, "MOST_UNDER_WAY", 1)
    for _ in range(20):
        scene.connect().send(hello()[:end])
    client = scene.client()
    scene.loop.run()
    client.do_handshake()
    scene.loop.run()
    ((secured, _),) = scene.outcomes
    assert secured is not None


def test_a_hello_may_come_in_parts(scene: Scene) -> None:
    stranger = scene.connect()
    whole = hello()
    for part in (whole[:3], whole[3:9], whole[9:]):
        assert not scene.handshakes._under_way
        stranger.send(part)
        scene.loop.pass_time(2 * EARLY_PAUSE_SECONDS)
    assert len(scene.handshakes._under_way) == 1


def test_when_too_many_wait_the_oldest_of_the_address_that_has_most_gives_way() -> None:
    scene = Scene(most_waiting=4)
    try:
        other = scene.connect("10.0.0.1:1")
        many = [scene.connect(f"10.0.0.2:{number}") for number in range(3)]
        newcomer = scene.connect("10.0.0.3:1")
        assert [is_closed(one) for one in (other, *many, newcomer)] == [False, True, False, False, False]
        assert len(scene.handshakes) == 4
        while scene.handshakes.give_way():
            pass
        assert len(scene.handshakes) == 0
    finally:
        scene.close()


def test_an_address_with_many_handshakes_keeps_no_other_waiting(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_UNDER_WAY", 4)
    far = scene.client("10.0.0.1:1")
    scene.loop.run()
    for number in range(50):
        scene.client(f"10.0.0.2:{number}")
    scene.loop.run()
    client = scene.client("10.0.0.3:1")
    scene.loop.pass_time(2 * PROTECTED_SECONDS)
    for one in (client, far):
        one.do_handshake()
    scene.loop.run()
    assert len([secured for secured, _ in scene.outcomes if secured is not None]) == 2


def test_closing_ends_all(scene: Scene) -> None:
    silent, begun = scene.connect(), scene.connect()
    begun.send(b"\x16\x03")
    scene.loop.run()
    scene.handshakes.close()
    assert scene.outcomes == [(None, ""), (None, "")]
    assert is_closed(silent)
    assert is_closed(begun)
    assert not scene.loop.turn()
