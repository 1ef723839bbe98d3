"""The keys of one issuer of tokens: fetched at the start, again in time, and when a token names one that is not known.

Owns when they are fetched and how long that may take, and keeps the last ones where it fails. Fetching is done on a
thread, and given up at the stop. Must not know what a token says.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

from lamina.broker.login.key_fetch import KeyFetch
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.security.signing_keys import KeySetError, SigningKey, read_key_set
from lamina.settings.oauthbearer import KeySource

logger = logging.getLogger(__name__)

_FETCH_SECONDS = 10.0
"""From the look for the address to the last byte."""
_BETWEEN_UNKNOWN_NS = 60_000_000_000
"""However many tokens name keys that are not known, they are fetched no more often for it."""


class Fetch(Protocol):
    """One look at an address."""

    def read(self) -> bytes:
        """What is there; raises OSError or ValueError."""

    def give_up(self) -> None:
        """End it now, if it has not ended."""


class KeySet:
    def __init__(
        self,
        source: KeySource,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
        new_fetch: Callable[[str], Fetch] = KeyFetch,
    ) -> None:
        self.keys: Sequence[SigningKey] = ()
        self._source = source
        self._threads = threads
        self._clocks = clocks
        self._loop = loop
        self._new_fetch = new_fetch
        self._wanted = asyncio.Event()
        self._wanted_ns: int | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._loop.create_task(self._keep())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def want_newer(self) -> None:
        """A token names a key that is not known: there may be a new one."""
        now_ns = self._clocks.monotonic_ns()
        if self._wanted_ns is None or now_ns - self._wanted_ns >= _BETWEEN_UNKNOWN_NS:
            self._wanted_ns = now_ns
            self._wanted.set()

    async def _keep(self) -> None:
        retry_ms = self._source.retry_ms
        while True:
            self._wanted.clear()
            if await self._refresh():
                retry_ms, wait_ms = self._source.retry_ms, self._source.refresh_ms
            else:
                wait_ms = retry_ms
                retry_ms = min(2 * retry_ms, self._source.retry_max_ms)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), wait_ms / 1000)

    async def _refresh(self) -> bool:
        """Whether there are fresh keys now; otherwise those there were stay."""
        url = self._source.url
        fetch = self._new_fetch(url)
        ending = self._loop.call_later(_FETCH_SECONDS, fetch.give_up)
        try:
            self.keys = await self._threads.run(lambda: read_key_set(fetch.read()))
        except Exception as error:
            # Whatever is at that address: the keys there are stay, and the next ones may be read.
            reason = str(error) if isinstance(error, OSError | KeySetError) else type(error).__name__
            logger.warning("the keys of OAUTHBEARER could not be read from %s: %s", _shown(url), reason)
            return False
        finally:
            ending.cancel()
            # Else, at a stop, a thread would still wait for it.
            fetch.give_up()
        logger.info("%d keys of OAUTHBEARER were read from %s", len(self.keys), _shown(url))
        return True


def _shown(url: str) -> str:
    """Without a user's name, a password or a query."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.hostname}{parts.path}"
