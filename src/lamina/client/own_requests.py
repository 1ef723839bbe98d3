"""What librdkafka cannot ask, asked over connections of the command's own.

Owns the way from a command without an event loop to the peer room, and its errors as sentences. Must not know any
request.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_urlsafe
from typing import TypeVar

from lamina.client.errors import ClientError
from lamina.errors import KafkaError
from lamina.peer.addresses import parse_bootstrap
from lamina.peer.cluster import ClusterClient
from lamina.peer.limits import Limits
from lamina.peer.security import connectors
from lamina.peer.security_properties import SecurityPropertyError, parse_security

T = TypeVar("T")


def ask(
    bootstrap_servers: str,
    client_id: str,
    security: Mapping[str, str],
    limits: Limits,
    work: Callable[[ClusterClient], Awaitable[T]],
) -> T:
    """What `work` is answered, with these of Kafka's client properties; raises ClientError when it is not."""
    try:
        connector = connectors(parse_security(security), token_urlsafe)(client_id)
    except SecurityPropertyError as error:
        raise ClientError(str(error)) from error

    async def run() -> T:
        bootstrap = parse_bootstrap(bootstrap_servers)
        async with ClusterClient(bootstrap, connector, random.random, limits) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(run())
    except KafkaError as error:
        raise ClientError(f"{str(error).rstrip('.')}; look at the broker's log, or try again") from error
