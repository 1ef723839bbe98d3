"""What a group and a committed offset cost a Lamina broker in memory: resident bytes before and after many of them.

Of Kafka nothing can be said this way: its heap is as large as it was told to be.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bench.librdkafka import create_topic
from bench.members import Connection, ConsumerMember, commit_request, find_coordinator
from bench.subjects import new_lamina
from bench.usage import resident_bytes
from tests.peers.lamina import Lamina

GROUPS = 20_000
MEMBERS = 2_000
OFFSETS = 200_000
PARTITIONS = 1_000
SETTLING_SECONDS = 2.0
TOPIC = "memory"
SMALL_TOPIC = "memory-small"


class GroupMemory(NamedTuple):
    bytes_per_group: float
    """Of groups that hold one offset each, with that offset."""
    bytes_per_offset: float
    """Of groups that hold a thousand each."""
    bytes_per_member: float
    """Of groups of the consumer protocol with one member and one partition each, with the group."""


def measure_group_memory() -> GroupMemory:
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as root, new_lamina(Path(root)) as lamina:
        create_topic(lamina.bootstrap, TOPIC, partitions=PARTITIONS)
        create_topic(lamina.bootstrap, SMALL_TOPIC)
        # The first requests load code and make the internal topic.
        asyncio.run(_commit_all(lamina.bootstrap, "first", 1, PARTITIONS))
        asyncio.run(_join_all(lamina.bootstrap, "first-member", 1))
        resident = [_resident_bytes(lamina)]
        asyncio.run(_commit_all(lamina.bootstrap, "small", GROUPS, 1))
        resident.append(_resident_bytes(lamina))
        asyncio.run(_commit_all(lamina.bootstrap, "large", OFFSETS // PARTITIONS, PARTITIONS))
        resident.append(_resident_bytes(lamina))
        asyncio.run(_join_all(lamina.bootstrap, "member", MEMBERS))
        resident.append(_resident_bytes(lamina))
        lamina.stop()
    grown = [after - before for before, after in pairwise(resident)]
    return GroupMemory(grown[0] / GROUPS, grown[1] / OFFSETS, grown[2] / MEMBERS)


def _resident_bytes(lamina: Lamina) -> int:
    time.sleep(SETTLING_SECONDS)
    return resident_bytes(lamina.process_id)


async def _commit_all(bootstrap: str, name: str, groups: int, offsets: int) -> None:
    await find_coordinator(bootstrap, name)
    connection = await Connection.open(bootstrap)
    for number in range(groups):
        answer = await connection.ask(
            commit_request(f"{name}-{number}", "", -1, TOPIC, {at: 1_000_000 + at for at in range(offsets)})
        )
        assert not any(one.error_code for topic in answer.topics for one in topic.partitions), answer
    connection.close()


async def _join_all(bootstrap: str, name: str, count: int) -> None:
    connection = await Connection.open(bootstrap)
    for number in range(count):
        member = ConsumerMember(connection, f"{name}-{number}", SMALL_TOPIC)
        member.join()
        await member.joined()
    connection.close()
