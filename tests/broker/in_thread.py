"""A whole broker, sockets included, on a thread of this process."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from lamina.broker.parts import Parts
from lamina.broker.server import Server, Started
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.settings.resolve import resolve_broker

START_SECONDS = 30.0

T = TypeVar("T")


class BrokerInThread:
    clocks: Clocks = SYSTEM_CLOCKS

    def __init__(
        self,
        directory: Path,
        new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
        /,
        **settings: str,
    ) -> None:
        given = {"lamina.data.dir": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", **settings}
        self._server = Server(resolve_broker(sets=given), self.clocks)
        self._ready = threading.Event()
        self._loop = new_event_loop()
        self._port = 0
        self._started_as: Started | None = None
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def started(self) -> Started:
        assert self._started_as is not None
        return self._started_as

    @property
    def parts(self) -> Parts:
        return self.started.parts

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=START_SECONDS)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the broker's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    def start(self) -> Self:
        self._thread.start()
        assert self._ready.wait(START_SECONDS), "the broker does not start"
        assert self.problem is None, self.problem
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(START_SECONDS)
        assert not self._thread.is_alive(), "the broker does not stop"
        self._loop.close()
        assert self.problem is None, self.problem

    def _run(self) -> None:
        try:
            fatal = self._loop.run_until_complete(self._server.run(self._started))
            assert fatal is None, fatal
        except BaseException as problem:
            self.problem = problem
            self._ready.set()

    def _started(self, started: Started) -> None:
        self._started_as = started
        self._port = started.bound[0].port
        self._ready.set()
