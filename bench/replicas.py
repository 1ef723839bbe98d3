"""What a cluster says of its replicas, and what a broker has of them on its disk.

Must not know what is measured, nor change anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient, PartitionMetadata

from bench.librdkafka import CALL_SECONDS, new_admin
from bench.load import Address

SYNC_SECONDS = 180
LOOK_SECONDS = 0.02


def leader_addresses(bootstrap: str, topic: str) -> list[Address]:
    """Where each partition is led, the first partition first."""
    told = new_admin(bootstrap).list_topics(topic, CALL_SECONDS)
    leaders = [told.brokers[one.leader] for _, one in sorted(told.topics[topic].partitions.items())]
    return [(str(leader.host), int(leader.port)) for leader in leaders]


def await_in_sync(bootstrap: str, brokers: Collection[int], topic: str | None = None) -> None:
    """Until every partition, of a topic or of all, has a leader and all these brokers in its in-sync set."""
    admin = new_admin(bootstrap)
    await_until(lambda: is_in_sync(admin, brokers, topic), f"not all replicas of {topic or 'the cluster'} are in sync")


def is_in_sync(admin: AdminClient, brokers: Collection[int], topic: str | None = None) -> bool:
    return all(one.leader >= 0 and set(brokers) <= set(one.isrs) for one in _partitions(admin, topic))


def _partitions(admin: AdminClient, topic: str | None) -> Iterator[PartitionMetadata]:
    topics = admin.list_topics(topic, CALL_SECONDS) if topic else admin.list_topics(timeout=CALL_SECONDS)
    for told in topics.topics.values():
        yield from told.partitions.values()


def await_until(holds: Callable[[], bool], otherwise: str, seconds: float = SYNC_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise} after {seconds:g} s")
        time.sleep(LOOK_SECONDS)


def segment_bytes(logs: Path, topic: str) -> int:
    """Of all segments of a topic below a log directory."""
    return sum(segment.stat().st_size for segment in logs.glob(f"{topic}-*/*.log"))
