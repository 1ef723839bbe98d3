"""What a broker tells the system that started it: ready, stopping, still alive (sd_notify).

Owns the datagram socket that systemd names in ``NOTIFY_SOCKET``; without that name nothing is told. The sign of life
(``WATCHDOG_USEC``) is given by the event loop itself: a broker whose loop stands still gives none. A notice that cannot
be delivered is no reason to stop. Must not know why the broker starts or stops.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

logger = logging.getLogger(__name__)

_LOGS_A_NOTICE = 16


class ServiceNotice:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._watchdog_seconds = _watchdog_seconds(environment)
        self._alive: asyncio.TimerHandle | None = None

    def opening(self, done: int, total: int) -> None:
        if done % _LOGS_A_NOTICE == 0:
            self._tell(f"STATUS=opening logs: {done} of {total}")

    def ready(self, status: str, loop: asyncio.AbstractEventLoop) -> None:
        """Clients can connect. From now on signs of life are given, if they are wanted."""
        self._tell(f"READY=1\nSTATUS={status}")
        if self._address is not None and self._watchdog_seconds:
            self._give_sign_of_life(loop)

    def _give_sign_of_life(self, loop: asyncio.AbstractEventLoop) -> None:
        self._tell("WATCHDOG=1")
        self._alive = loop.call_later(self._watchdog_seconds / 2, self._give_sign_of_life, loop)

    def stopping(self) -> None:
        """The loop still turns while the logs are flushed, so the signs of life go on until it ends."""
        self._tell("STOPPING=1\nSTATUS=answering what is under way, then flushing the logs")

    def ended(self) -> None:
        if self._alive is not None:
            self._alive.cancel()

    def _tell(self, text: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as told:
                told.setblocking(False)
                told.sendto(text.encode(), self._address)
        except OSError as error:
            logger.debug("the service manager was not told %s: %s", text, error)


def _address(given: str) -> str | None:
    """A path, or a name behind ``@`` that has none in the file system; anything else is not ours to guess."""
    if given.startswith("@"):
        return "\0" + given[1:]
    return given if given.startswith("/") else None


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """How long may pass between signs of life; 0 when no watchdog waits for this process's."""
    wanted = environment.get("WATCHDOG_USEC", "")
    meant_for = environment.get("WATCHDOG_PID", "") or str(os.getpid())
    return int(wanted) / 1_000_000 if wanted.isdecimal() and meant_for == str(os.getpid()) else 0.0
