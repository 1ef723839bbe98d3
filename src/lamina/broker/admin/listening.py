"""The admin listener's sockets, and the application that answers on them, loaded at the first connection.

Owns the ports, taken with the broker's own so that a port in use stops the start; the way from the first connection
to an application that serves it; and the end. Starlette and uvicorn are imported on a thread, so that the loop goes
on and a broker without admin clients never pays for them. Must not know routes.
"""

import asyncio
import errno
import gc
import importlib
import logging
from dataclasses import replace
from typing import Protocol

from lamina.broker.admin.subject import Subject
from lamina.broker.counters import Place
from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.network.listening import Bound, bind, why_not_bound
from lamina.broker.threads import giving_way
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
from lamina.storage import StartError

logger = logging.getLogger(__name__)

_BACKLOG = 64
_SERVING = "lamina.broker.admin.serving"


class Serving(Protocol):
    """What ``serving`` makes: an application on the sockets."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def bind_admin(settings: BrokerSettings) -> list[Bound]:
    """Take the ports. Where brokers choose their own port, the default here gives way as well."""
    gives_way = admin_gives_way(settings)
    bound: list[Bound] = []
    for listener in admin_listeners(settings):
        try:
            bound.append(_bind(listener, gives_way=gives_way))
        except OSError as error:
            for one in bound:
                one.socket.close()
            raise StartError(
                f"{listener.host or 'every address'}:{listener.port} cannot be listened on by the admin listener: "
                f"{why_not_bound(error)}, or choose another with --set lamina.admin.listeners=HOST:PORT "
                "(port 0 takes a free one, an empty value switches it off)"
            ) from error
    return bound


def admin_gives_way(settings: BrokerSettings) -> bool:
    """Whether another port is taken where the default one is in use."""
    return not settings.is_given(LAMINA_ADMIN_LISTENERS) and any(not one.port for one in listeners(settings))


def _bind(listener: Listener, *, gives_way: bool) -> Bound:
    try:
        return _listen(listener)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not gives_way:
            raise
        return _listen(replace(listener, port=0))


def _listen(listener: Listener) -> Bound:
    """At once: two brokers can take the same port as long as neither listens. Who connects is answered soon."""
    bound = bind(listener, _BACKLOG)
    try:
        bound.listen()
    except OSError:
        bound.socket.close()
        raise
    return bound


def advertised_admin(settings: BrokerSettings, taken: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Where tools find the listener: on every address, that is the host under which clients find the broker."""
    host = advertised_listeners(settings)[0].host
    here = (replace(one, host=host) if not one.host or one.host in ANY_ADDRESSES else one for one in taken)
    return advertised_admin_listeners(settings) or tuple(here) if taken else ()


class AdminListening:
    def __init__(self, subject: Subject, bound: list[Bound], tls: ListenerTls | None = None) -> None:
        """``tls`` is that of the listeners that speak HTTPS."""
        self._subject = subject
        self._tls = tls
        self._bound = bound
        self._loop = subject.loop
        self._task: asyncio.Task[Serving | None] | None = None
        for one in bound:
            self._loop.add_reader(one.socket.fileno(), self._first_connection)

    def _first_connection(self) -> None:
        self._stop_waiting()
        self._task = self._loop.create_task(self._serve())

    def _stop_waiting(self) -> None:
        for one in self._bound:
            self._loop.remove_reader(one.socket.fileno())

    async def _serve(self) -> Serving | None:
        try:
            serving = await self._subject.threads.run(self._load)
            await serving.start()
        except Exception as error:
            self._subject.counters.count_unexpected(Place.ADMIN)
            logger.error("the admin listener cannot be served", exc_info=error)
            for one in self._bound:
                one.socket.close()
            return None
        return serving

    async def stop(self) -> None:
        """Accept no more connections; running requests may end, but not for long."""
        if self._task is None:
            self._stop_waiting()
        else:
            serving = await self._task
            if serving is not None:
                await serving.stop()
        for one in self._bound:
            one.socket.close()
        self._subject.scan_pool.close()

    def _load(self) -> Serving:
        """On a thread: import what was not needed so far and make the application, while the loop gets its turns."""
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            with giving_way():
                plain = [one.socket for one in self._bound if one.listener.protocol == "HTTP"]
                secured = [one.socket for one in self._bound if one.listener.protocol == "HTTPS"]
                serving: Serving = importlib.import_module(_SERVING).Serving(self._subject, plain, secured, self._tls)
            # The collector need not walk it again and again on the loop.
            gc.freeze()
        finally:
            if was_collecting:
                gc.enable()
        return serving
