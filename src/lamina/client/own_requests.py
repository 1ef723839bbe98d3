"""What librdkafka cannot ask, asked over connections of the command's own.

Owns the way from a command without an event loop to the peer room, and its errors as sentences. Only a listener without
TLS and login can be asked so. Must not know any request.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lamina.client.errors import ClientError
from lamina.errors import KafkaError
from lamina.peer.addresses import parse_bootstrap
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits

T = TypeVar("T")


def ask(bootstrap_servers: str, client_id: str, limits: Limits, work: Callable[[ClusterClient], Awaitable[T]]) -> T:
    """What `work` is answered; raises ClientError when it is not."""

    async def run() -> T:
        bootstrap = parse_bootstrap(bootstrap_servers)
        async with ClusterClient(bootstrap, PlainConnector(client_id), random.random, limits) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(run())
    except KafkaError as error:
        raise ClientError(f"{str(error).rstrip('.')}; look at the broker's log, or try again") from error
