"""A cluster, for a writer that does not await: its client on an event loop on a thread of its own.

Owns both, and the back-off and the randomness that all parts of one writer share. Must not know what is written.
"""

import random
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from lamina.arrow.connecting import open_cluster
from lamina.arrow.driving import LoopThread
from lamina.arrow.properties import ClientProperties
from lamina.peer.retries import Backoff
from lamina.producing.transactions import Transactions

T = TypeVar("T")


class Session:
    """To be used as ``with Session(…) as session: session.run(…)``. Its end closes all connections."""

    def __init__(self, client: ClientProperties) -> None:
        limits = client.limits
        self.cluster = open_cluster(client)
        self.random = random.Random().random
        """Evenly from [0, 1)."""
        self.backoff = Backoff(limits.retry_backoff_ms, limits.retry_backoff_max_ms, self.random)
        self.transactions = Transactions(self.cluster, self.backoff, limits.api_timeout_ms)
        self._loop = LoopThread()

    def __enter__(self) -> "Session":
        self._loop.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            self._loop.run(self.cluster.__aexit__(None, None, None))
        finally:
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the coroutine gives, on the loop."""
        return self._loop.run(work)
