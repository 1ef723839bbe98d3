"""A start that fails gives back what it took: its ports, its directories, its threads."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.broker import server
from lamina.broker.admin.listening import AdminListening
from lamina.broker.network.listening import Bound, Listening
from lamina.broker.parts import Parts
from lamina.broker.server import Server
from lamina.settings.resolve import resolve_broker
from lamina.storage import StartError, open_storage


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_what_ends_a_broker_while_it_starts_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def goes_down(*_: object) -> None:
        broker._go_down("its id was taken")
        await asyncio.Event().wait()

    monkeypatch.setattr(Parts, "start", goes_down)
    sets = {"lamina.data.dir": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"}
    settings = resolve_broker(sets={**sets, "lamina.admin.listeners": ""})
    broker = Server(settings)
    with pytest.raises(StartError, match=r"^its id was taken$"):
        asyncio.run(broker.run(failing(AssertionError("it has not started"))))
    open_storage(settings).release()


@pytest.mark.parametrize(
    ("where", "what", "error", "told"),
    [
        (server, "connection_limits", RuntimeError("no limits"), "no limits"),
        (server, "admin_subject", RuntimeError("no subject"), "no subject"),
        (AdminListening, "__init__", RuntimeError("no admin"), "no admin"),
        (Parts, "watch_directories", RuntimeError("no watch"), "no watch"),
        (Listening, "start", OSError(24, "Too many open files"), "the listeners cannot be opened: Too many open"),
        (server, "start_periodic_work", RuntimeError("no timers"), "no timers"),
    ],
)
def test_whatever_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, what: str, error: Exception, told: str
) -> None:
    bound: list[Bound] = []
    bind = server.Server._bind

    def keep(self: Server) -> tuple[list[Bound], list[Bound]]:
        taken = bind(self)
        bound.extend((*taken[0], *taken[1]))
        return taken

    monkeypatch.setattr(Server, "_bind", keep)
    monkeypatch.setattr(where, what, failing(error))
    settings = resolve_broker(
        sets={
            "lamina.data.dir": str(tmp_path / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "lamina.admin.listeners": "http://127.0.0.1:0",
            "max.connections.per.ip.overrides": "localhost:5",
        }
    )
    threads_before = set(threading.enumerate())

    async def start() -> None:
        tasks_before = asyncio.all_tasks()
        try:
            await Server(settings).run(failing(AssertionError("it has not started")))
        finally:
            assert len(bound) == 2
            assert all(one.socket.fileno() == -1 for one in bound)
            for _ in range(3):
                await asyncio.sleep(0)
            assert asyncio.all_tasks() == tasks_before

    expected = StartError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected, match=told):
        asyncio.run(start())
    assert {one for one in threading.enumerate() if one.is_alive()} <= threads_before
    monkeypatch.undo()
    open_storage(settings).release()
