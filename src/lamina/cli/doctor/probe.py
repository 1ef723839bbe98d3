"""Asking what listens at an address whether it is a Kafka broker, and which.

Three requests that every broker since Kafka 2.1 knows, over a plain connection; nothing is made or changed. Must not
trust the answers: anything may listen there.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from lamina.errors import KafkaError
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.routes import metadata_call
from lamina.wire.api_keys import DESCRIBE_CONFIGS

DATA_DIR = "lamina.data.dir"

_DESCRIBE_CONFIGS_VERSIONS = range(1, 5)
_BROKER = 4
_LARGEST_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answering:
    """A broker that answered; it is Lamina's if it has Lamina's settings."""

    is_lamina: bool = False
    node_id: int | None = None
    cluster_id: str | None = None

    def __str__(self) -> str:
        node = "" if self.node_id is None else f", node {self.node_id}"
        cluster = "" if self.cluster_id is None else f", cluster {self.cluster_id}"
        return f"{'Lamina' if self.is_lamina else 'a Kafka broker'}{node}{cluster}"


def probe(host: str, port: int, seconds: float = 3.0) -> Answering | None:
    """``None`` if it does not speak Kafka, or not in time. Raises OSError when nothing accepts the connection."""
    return asyncio.run(_probe(Address(host, port), seconds))


async def _probe(address: Address, seconds: float) -> Answering | None:
    limits = Limits(request_timeout_ms=round(seconds * 1000), max_response_bytes=_LARGEST_ANSWER_BYTES)
    try:
        async with asyncio.timeout(seconds):
            connection = await PlainConnector("lamina-doctor").connect(address, limits)
    except TimeoutError as error:
        raise TimeoutError("timed out") from error
    try:
        await connection.negotiate()
    except KafkaError:
        return None
    else:
        return await identify(connection)
    finally:
        connection.close()


async def identify(connection: Connection) -> Answering:
    """Who is at the other end of a connection that speaks Kafka."""
    try:
        metadata = await connection.request(metadata_call([]))
        described = await connection.request(_own_configs(int(broker.node_id) for broker in metadata.brokers))
    except KafkaError:
        # It spoke Kafka, and no more: with authentication it says nothing else to strangers.
        return Answering()
    own = next((result for result in described.results if not result.error_code), None)
    if own is None:
        return Answering(cluster_id=metadata.cluster_id)
    is_lamina = any(config.name == DATA_DIR for config in own.configs)
    return Answering(is_lamina, int(own.resource_name), metadata.cluster_id)


def _own_configs(broker_ids: Iterable[int]) -> MessageCall:
    """Asks for a setting of every broker. Which of them answers is told by this alone: each knows its own settings."""
    return MessageCall(
        DESCRIBE_CONFIGS,
        _DESCRIBE_CONFIGS_VERSIONS,
        resources=[
            {"resource_type": _BROKER, "resource_name": str(broker_id), "configuration_keys": [DATA_DIR]}
            for broker_id in broker_ids
        ],
        include_synonyms=False,
        include_documentation=False,
    )
