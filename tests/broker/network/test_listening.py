"""The listening sockets by themselves."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, cast

import pytest

from lamina.broker.network.address_rates import AddressRates
from lamina.broker.network.admission import Admission
from lamina.broker.network.connection_quota import ConnectionQuota
from lamina.broker.network.listening import Listening, bind
from lamina.broker.network.tls_listeners import TlsListeners
from lamina.broker.requests.request import Client, Request, Response
from lamina.clocks import SYSTEM_CLOCKS
from lamina.settings.connection_limits import connection_limits
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker


class Silent:
    """A service that is never asked."""

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response]:
        raise AssertionError

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        raise AssertionError

    def connection_failed(self) -> None:
        raise AssertionError


def listening_on(
    loop: asyncio.AbstractEventLoop, settings: Mapping[str, str] | None = None, max_idle_ms: int = -1
) -> Listening:
    given = resolve_broker(sets=settings or {})
    quota = ConnectionQuota(connection_limits(given), ("X",))
    tls = TlsListeners(given, SYSTEM_CLOCKS.now_ms)
    rates = AddressRates(11, 1000)
    return Listening(loop, SYSTEM_CLOCKS, Silent(), Admission(1 << 20), quota, rates, 1 << 20, max_idle_ms, 100, tls)


@pytest.mark.parametrize("max_idle_ms", [0, 1])
def test_looking_for_idle_connections_leaves_the_loop_to_others_however_short_idle_is(max_idle_ms: int) -> None:
    class Loop:
        delays: list[float]

        def call_later(self, seconds: float, _: Callable[..., Any]) -> None:
            self.delays.append(seconds)

    loop = Loop()
    loop.delays = []
    listening_on(cast(asyncio.AbstractEventLoop, loop), max_idle_ms=max_idle_ms).start([])
    assert len(loop.delays) == 2
    assert min(loop.delays) >= 0.05


def test_listeners_that_open_one_after_the_other_have_their_connections_watched_once() -> None:
    """A member opens the listener between brokers first, and a broker alone opens none at that time."""

    class Loop:
        due: list[Callable[[], None]]

        def call_later(self, _: float, callback: Callable[[], None]) -> None:
            self.due.append(callback)

        def time(self) -> float:
            return 0.0

    loop = Loop()
    loop.due = []
    listening = listening_on(cast(asyncio.AbstractEventLoop, loop), max_idle_ms=600_000)
    listening.start([])
    listening.start([])
    for _ in range(2):
        assert [callback.__name__ for callback in loop.due] == ["_sweep", "_close_stalled"]
        due, loop.due = loop.due, []
        for callback in due:
            callback()
    listening.stop_accepting()
    due, loop.due = loop.due, []
    for callback in due:
        callback()
    assert not loop.due


@pytest.mark.parametrize("is_out_of_descriptors", [True, False])
def test_many_are_turned_away_in_one_turn_and_the_rest_soon_after(
    is_out_of_descriptors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_out_of_descriptors:
        monkeypatch.setattr("resource.getrlimit", lambda _: (0, 0))
    delays: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def delayed(seconds: float, *args: Any) -> asyncio.TimerHandle:
            delays.append(seconds)
            return call_later(seconds, *args)

        monkeypatch.setattr(loop, "call_later", delayed)
        listening = listening_on(loop, {"max.connections.per.ip.overrides": "127.0.0.1:0"})
        bound = bind(Listener("X", "PLAINTEXT", "127.0.0.1", 0), 100)
        bound.listen()
        with ExitStack() as crowd:
            clients = [crowd.enter_context(socket.create_connection(("127.0.0.1", bound.port))) for _ in range(40)]
            listening.start([bound])
            for client in clients:
                client.setblocking(False)
                assert await loop.sock_recv(client, 1) == b""
        listening.stop_accepting()
        assert listening.refused_by_system == (40 if is_out_of_descriptors else 0)

    asyncio.run(run())
    assert [delay for delay in delays if delay < 1] == [0.005, 0.005]


def test_a_connection_whose_client_is_gone_before_it_is_accepted_takes_no_place() -> None:
    """On macOS the socket of such a client takes no options any more."""

    class Gone(socket.socket):
        def setsockopt(self, *_: Any) -> None:
            raise OSError(22, "Invalid argument")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        bound = bind(Listener("X", "PLAINTEXT", "127.0.0.1", 0), 10)
        listening = listening_on(loop)
        listening.quota.add("X", "127.0.0.1")
        ours, theirs = socket.socketpair()
        theirs.close()
        gone = Gone(fileno=ours.detach())
        with bound.socket:
            listening._connect(bound, gone, ("127.0.0.1", 1))
        assert gone.fileno() == -1
        assert not listening.connections
        assert listening.quota.count == 0

    asyncio.run(run())
