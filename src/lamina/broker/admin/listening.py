"""The admin listener's sockets, and what answers on them, fetched when somebody first connects.

Owns the ports, taken with the broker's own so that a port in use stops the start; the way from the first connection
to an application that serves it; and the end. Starlette and uvicorn are imported on a thread, so that the loop goes
on and a broker that nobody asks never pays for them. Must not know routes.
"""

import asyncio
import gc
import importlib
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from lamina.broker.admin.subject import Subject
from lamina.broker.listening import Bound, bind
from lamina.broker.storage import StartError
from lamina.settings.listeners import (
    ANY_ADDRESSES,
    Listener,
    admin_listeners,
    advertised_admin_listeners,
    advertised_listeners,
    listeners,
)
from lamina.settings.network import LAMINA_ADMIN_LISTENERS
from lamina.settings.values import BrokerSettings

logger = logging.getLogger(__name__)

_BACKLOG = 64
_SERVING = "lamina.broker.admin.serving"
_SWITCH_SECONDS = 0.0005


class Serving(Protocol):
    """What ``serving`` makes: an application on the sockets."""

    async def stop(self) -> None: ...


Begin = Callable[[Subject, list[socket.socket]], Awaitable[Serving]]


def bind_admin(settings: BrokerSettings) -> list[Bound]:
    """Take the ports. Where brokers choose their own port, the default here gives way as well."""
    gives_way = not settings.is_given(LAMINA_ADMIN_LISTENERS) and any(not one.port for one in listeners(settings))
    bound: list[Bound] = []
    for listener in admin_listeners(settings):
        try:
            bound.append(_bind(listener, gives_way=gives_way))
        except OSError as error:
            for one in bound:
                one.socket.close()
            raise StartError(
                f"{listener.host or 'every address'}:{listener.port} cannot be listened on by the admin listener: "
                f"{error.strerror}; stop what uses it, or choose another with --set lamina.admin.listeners=HOST:PORT "
                "(port 0 takes a free one, nothing switches it off)"
            ) from error
    return bound


def _bind(listener: Listener, *, gives_way: bool) -> Bound:
    try:
        return bind(listener, _BACKLOG)
    except OSError:
        if not gives_way:
            raise
        return bind(replace(listener, port=0), _BACKLOG)


def advertised_admin(settings: BrokerSettings, taken: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Where tools find the listener: on every address, that is the host under which clients find the broker."""
    host = advertised_listeners(settings)[0].host
    here = (replace(one, host=host) if not one.host or one.host in ANY_ADDRESSES else one for one in taken)
    return advertised_admin_listeners(settings) or tuple(here) if taken else ()


class AdminListening:
    def __init__(self, subject: Subject, bound: list[Bound]) -> None:
        self._subject = subject
        self._bound = bound
        self._loop = subject.node.loop
        self._task: asyncio.Task[Serving | None] | None = None
        for one in bound:
            self._loop.add_reader(one.socket.fileno(), self._somebody_came)

    def _somebody_came(self) -> None:
        self._wait_no_more()
        self._task = self._loop.create_task(self._serve())

    def _wait_no_more(self) -> None:
        for one in self._bound:
            self._loop.remove_reader(one.socket.fileno())

    async def _serve(self) -> Serving | None:
        try:
            begin = await self._subject.node.threads.run(_load)
            return await begin(self._subject, [one.socket for one in self._bound])
        except Exception as error:
            self._subject.node.unexpected_errors += 1
            logger.error("the admin listener cannot be served", exc_info=error)
            for one in self._bound:
                one.socket.close()
            return None

    async def stop(self) -> None:
        """Nobody new; what is under way may end, but not for long."""
        if self._task is None:
            self._wait_no_more()
        else:
            serving = await self._task
            if serving is not None:
                await serving.stop()
        for one in self._bound:
            one.socket.close()


def _load() -> Begin:
    """Import on a thread what nobody needed so far, while the loop gets its turns."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        begin: Begin = importlib.import_module(_SERVING).begin
        gc.freeze()
    finally:
        sys.setswitchinterval(usual)
        if was_collecting:
            gc.enable()
    return begin
