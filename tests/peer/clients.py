"""A client of a real cluster, and batches for it."""

from typing import Any

from lamina.peer.addresses import parse_bootstrap
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.target import Controller, Target
from lamina.records.batch import Codec, walk
from lamina.records.record import Record, build_batch, read_records

CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_CLUSTER = 19, 20, 60
NOW_MS = 1_700_000_000_000
LIMITS = Limits(api_timeout_ms=60_000, retry_backoff_ms=10)
MIB = 1 << 20


def client(servers: str) -> ClusterClient:
    return ClusterClient(parse_bootstrap(servers), PlainConnector("test"), lambda: 0.5, LIMITS)


async def create(cluster: ClusterClient, topic: str) -> None:
    asked = {"name": topic, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    call = MessageCall(CREATE_TOPICS, range(2, 8), topics=[asked], timeout=30_000, validate_only=False)
    (created,) = (await cluster.request(Controller(), call)).topics
    assert created.error_code == 0


async def delete(cluster: ClusterClient, topic: str) -> None:
    call = MessageCall(DELETE_TOPICS, range(6, 7), topics=[{"name": topic, "topic_id": None}], timeout=30_000)
    (deleted,) = (await cluster.request(Controller(), call)).responses
    assert deleted.error_code == 0


def batch_of(*values: bytes, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([Record(offset, NOW_MS, b"key", value) for offset, value in enumerate(values)], codec=codec)


def values_in(records: memoryview) -> list[bytes | None]:
    return [
        record.value
        for at, header in walk(records)
        for record in read_records(records, at, header, limit_bytes=64 * MIB)
    ]


async def brokers_told_by(cluster: ClusterClient, to: Target) -> list[int]:
    """Whom the broker in a role knows."""
    call = MessageCall(DESCRIBE_CLUSTER, range(2), include_cluster_authorized_operations=False)
    response: Any = await cluster.request(to, call)
    return [int(one.broker_id) for one in response.brokers]
