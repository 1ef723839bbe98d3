"""The keys of one issuer of tokens: fetched at the start, again in time, and when a token names one that is not known.

Owns when they are fetched, and keeps the last ones where that fails. Fetching is done on a thread. The address is the
settings' alone: a redirection is not followed, lest the keys come from elsewhere (S82). Must not know what a token
says.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener, url2pathname

from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.security.signing_keys import KeySetError, SigningKey, read_key_set
from lamina.settings.oauthbearer import KeySource

logger = logging.getLogger(__name__)

_MOST_BYTES = 1024 * 1024
_FETCH_SECONDS = 10.0
_PIECE_BYTES = 64 * 1024
_BETWEEN_UNKNOWN_NS = 60_000_000_000
"""However many tokens name keys that are not known, they are fetched no more often for it."""

Fetch = Callable[[str], bytes]
"""What is at an address; raises OSError or ValueError."""


class KeySet:
    def __init__(
        self,
        source: KeySource,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
        fetch: Fetch | None = None,
    ) -> None:
        self.keys: Sequence[SigningKey] = ()
        self._source = source
        self._threads = threads
        self._clocks = clocks
        self._loop = loop
        self._fetch = fetch or partial(fetch_keys, monotonic_ns=clocks.monotonic_ns)
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
        try:
            self.keys = await self._threads.run(lambda: read_key_set(self._fetch(url)))
        except Exception as error:
            # Whatever is at that address: the keys there are stay, and the next ones may be read.
            reason = str(error) if isinstance(error, OSError | KeySetError) else type(error).__name__
            logger.warning("the keys of OAUTHBEARER could not be read from %s: %s", _shown(url), reason)
            return False
        logger.info("%d keys of OAUTHBEARER were read from %s", len(self.keys), _shown(url))
        return True


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """None follows no redirection, which is an error then."""
        return


def fetch_keys(url: str, monotonic_ns: Callable[[], int]) -> bytes:
    """For a thread. Raises OSError or ValueError."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with Path(url2pathname(parts.path)).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    else:
        try:
            with build_opener(_NoRedirection()).open(url, timeout=_FETCH_SECONDS) as response:
                data = _read_in_time(response, monotonic_ns)
        except HTTPException as error:
            raise OSError(f"no answer of HTTP: {type(error).__name__}") from error
    if len(data) > _MOST_BYTES:
        raise KeySetError(f"more than {_MOST_BYTES} bytes")
    return bytes(data)


def _read_in_time(response: HTTPResponse, monotonic_ns: Callable[[], int]) -> bytes:
    """Piece by piece: the timeout of a socket is that of each."""
    data = bytearray()
    ends_ns = monotonic_ns() + int(_FETCH_SECONDS * 1e9)
    while len(data) <= _MOST_BYTES and (piece := response.read1(_PIECE_BYTES)):
        data += piece
        if monotonic_ns() > ends_ns:
            raise TimeoutError(f"the answer took longer than {_FETCH_SECONDS:g} s")
    return bytes(data)


def _shown(url: str) -> str:
    """Without a user's name, a password or a query."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.hostname}{parts.path}"
