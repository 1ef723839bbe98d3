"""Which clients have hung up, whether or not all that they sent is read.

The loop tells that a socket is readable, for bytes and for the end of the stream alike, and does so again and again
until they are read. A connection that leaves bytes in its socket therefore stops looking, and its client's end behind
them would go unseen; and uvloop tells of a reset only once, whatever is left to read. Owns one epoll for all sockets,
which waits for the end alone. Where the system has none, an end behind unread bytes is seen when these are read. Must
not know connections.
"""

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress

_END = getattr(select, "EPOLLRDHUP", 0)
"""The client sends nothing more. A reset is always told, whatever was asked for."""


class HangUps:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll: select.epoll | None = None
        self._watched: dict[int, Callable[[], None]] = {}

    def watch(self, fd: int, hung_up: Callable[[], None]) -> None:
        """Call ``hung_up`` once when the client at this socket sends nothing more, unless forgotten before."""
        if not hasattr(select, "epoll"):
            return
        with suppress(OSError):  # Without a descriptor to spare, the end is seen when all is read.
            if self._epoll is None:
                self._epoll = select.epoll()
                self._loop.add_reader(self._epoll.fileno(), self._tell)
            self._epoll.register(fd, _END)
            self._watched[fd] = hung_up

    def forget(self, fd: int) -> None:
        """Look no longer. To be called before the socket is closed."""
        if self._watched.pop(fd, None) is not None and self._epoll is not None:
            self._epoll.unregister(fd)

    def _tell(self) -> None:
        assert self._epoll is not None
        for fd, _ in self._epoll.poll(0):
            hung_up = self._watched.get(fd)
            if hung_up is not None:
                self.forget(fd)
                hung_up()

    def close(self) -> None:
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
            self._watched.clear()
