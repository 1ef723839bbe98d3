"""The way in for code without an event loop: the command line."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lamina.peer.addresses import Address
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import Connector
from lamina.peer.limits import Limits

T = TypeVar("T")


def with_cluster(
    bootstrap: Sequence[Address],
    connector: Connector,
    random: Callable[[], float],
    limits: Limits,
    work: Callable[[ClusterClient], Awaitable[T]],
) -> T:
    """What `work` gives, on a loop of its own. Must not be called where a loop runs."""

    async def run() -> T:
        async with ClusterClient(bootstrap, connector, random, limits) as cluster:
            return await work(cluster)

    return asyncio.run(run())
