"""Any bytes sent to the admin listener: every answer is HTTP, none of them says that the broker failed.

The broker and its application are made once and serve all runs. With the token writing is open too.
"""

import asyncio
import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.server import ServerState

from fuzz.choices import Choices
from lamina.broker.admin.app import build_app
from lamina.broker.admin.hosts import HostCheck
from lamina.broker.admin.routes import ROUTES
from lamina.broker.admin.serving import BoundedProtocol
from tests.broker.admin.app_calls import subject_of
from tests.broker.in_process import InProcessBroker

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_MOST_PARTS = 4
_MOST_SECONDS = 10


class _Transport(asyncio.Transport):
    """What the protocol writes to: nothing is sent anywhere."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


@cache
def _served() -> tuple[InProcessBroker, Config]:
    broker = InProcessBroker(Path(mkdtemp(prefix="lamina-fuzz-")), {})
    broker.create("orders", partitions=2, cleanup_policy="compact")
    broker.produce("orders", 3)
    app = build_app(subject_of(broker), ROUTES, HostCheck((), ()))
    config = Config(app, http=BoundedProtocol, ws="none", lifespan="off", interface="asgi3", log_config=None)
    config.load()
    return broker, config


def one(data: bytes) -> None:
    broker, config = _served()
    choices = Choices(data)
    parts = [choices.take(choices.number(2)) for _ in range(choices.number() % _MOST_PARTS)]
    written = broker._loop.run_until_complete(asyncio.wait_for(_talk(config, [*parts, choices.rest()]), _MOST_SECONDS))
    assert broker.parts.counters.unexpected.total() == 0
    statuses = [int(status) for status in _STATUS.findall(written)]
    assert 500 not in statuses, written
    assert not written or written.startswith(b"HTTP/1.1 "), written


async def _talk(config: Config, parts: list[bytes]) -> bytes:
    """Say all parts, and hear what is answered until nobody works on an answer any more."""
    state, transport = ServerState(), _Transport()
    protocol = BoundedProtocol(config, state, {}, asyncio.get_running_loop())
    protocol.connection_made(transport)
    for part in filter(None, parts):
        if transport.is_closed:
            break
        protocol.data_received(part)
        while state.tasks and protocol.conn.their_state is not h11.SEND_BODY:
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.gather(*state.tasks, return_exceptions=True)
    return transport.written
