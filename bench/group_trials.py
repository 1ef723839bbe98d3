"""What is measured of groups: commits, rebalances, and loading after a restart.

Owns the amounts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.librdkafka import create_topic
from bench.load import Load, run_prepared
from bench.members import (
    ClassicMember,
    Connection,
    ConsumerMember,
    commit_request,
    fetch_request,
    find_coordinator,
)
from bench.subjects import Subject, wait_for_answer
from lamina.wire.codec import encode_request

COMMITTERS = 16
COMMIT_SECONDS = 3.0
MEMBERS = 100
PARTITIONS = 300
LOADED_COMMITS = int(os.environ.get("LAMINA_BENCH_COMMITS", "1000000"))
"""A smaller number is for trying the row out."""
LOADED_PARTITIONS = 100
PATIENCE_SECONDS = 600.0
NO_MEMBER = ("", -1)


def commits(subject: Subject, topic: str) -> tuple[float, ...]:
    """Members of one group, each with one commit of one partition on its way."""
    create_topic(subject.bootstrap, topic, partitions=COMMITTERS)
    members = asyncio.run(_members_of(subject.bootstrap, topic))
    done = _commit(subject, topic, members, COMMIT_SECONDS)
    return done.requests_per_second, done.p99_ms


async def _members_of(bootstrap: str, group: str) -> list[tuple[str, int]]:
    """Ids and epochs; the broker waits a session timeout before it misses them."""
    await find_coordinator(bootstrap, group)
    found = []
    for _ in range(COMMITTERS):
        connection = await Connection.open(bootstrap)
        member = ConsumerMember(connection, group, group)
        member.join()
        await member.joined()
        connection.close()
        found.append((member.member_id, member.epoch))
    return found


def _commit(
    subject: Subject, group: str, members: Sequence[tuple[str, int]], seconds: float, count: int | None = None
) -> Load:
    frames = [
        bytes(encode_request(commit_request(group, member_id, epoch, group, {number: number}), 1, "bench"))
        for number, (member_id, epoch) in enumerate(members)
    ]
    # Length, correlation id, tags, throttle time, one topic, its name, one partition, its number.
    error_at = 4 + 4 + 1 + 4 + 1 + 1 + len(group) + 1 + 4
    return run_prepared(subject, frames, error_at, seconds, count)


def rebalance(protocol: str) -> Callable[[Subject, str], tuple[float, ...]]:
    """From the last join to the last assignment, and the broker's CPU seconds meanwhile."""

    def run(subject: Subject, topic: str) -> tuple[float, ...]:
        create_topic(subject.bootstrap, topic, partitions=PARTITIONS)
        return asyncio.run(_rebalance(subject, topic, protocol))

    return run


async def _rebalance(subject: Subject, topic: str, protocol: str) -> tuple[float, float]:
    await find_coordinator(subject.bootstrap, topic)
    connections = [await Connection.open(subject.bootstrap) for _ in range(MEMBERS)]
    members: list[Any] = [
        ClassicMember(connection, topic, topic, PARTITIONS)
        if protocol == "classic"
        else ConsumerMember(connection, topic, topic)
        for connection in connections
    ]
    is_done = _is_classic_done if protocol == "classic" else _is_consumer_done
    cpu_seconds = _cpu_seconds(subject)
    for member in members:
        member.join()
    began = time.perf_counter()
    tasks = [asyncio.create_task(member.follow()) for member in members]
    while not is_done(members):
        if time.perf_counter() - began > PATIENCE_SECONDS:
            raise TimeoutError(f"{topic}: {MEMBERS} members did not come to rest")
        if failed := next((task for task in tasks if task.done()), None):
            failed.result()
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - began
    cpu_seconds = _cpu_seconds(subject) - cpu_seconds
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for connection in connections:
        connection.close()
    return seconds, cpu_seconds


def _is_classic_done(members: Sequence[ClassicMember]) -> bool:
    generations = {member.generation for member in members if member.is_assigned}
    leaders = [member for member in members if member.member_count == MEMBERS]
    return len(generations) == 1 and bool(leaders) and all(member.is_assigned for member in members)


def _is_consumer_done(members: Sequence[ConsumerMember]) -> bool:
    share = PARTITIONS // MEMBERS
    return all(member.owned_count == share for member in members)


def _cpu_seconds(subject: Subject) -> float:
    with open(f"/proc/{subject.process_id}/stat") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loading(subject: Subject, topic: str) -> tuple[float, ...]:
    """From the start, and from the first answer, until the group's offsets can be fetched again."""
    create_topic(subject.bootstrap, topic, partitions=LOADED_PARTITIONS)
    asyncio.run(find_coordinator(subject.bootstrap, topic))
    _commit(subject, topic, [NO_MEMBER] * LOADED_PARTITIONS, PATIENCE_SECONDS, LOADED_COMMITS)
    subject.stop()
    began = time.perf_counter()
    subject.launch()
    wait_for_answer(subject)
    answered = time.perf_counter()
    asyncio.run(_wait_for_offsets(subject.bootstrap, topic))
    loaded = time.perf_counter()
    return loaded - began, loaded - answered


async def _wait_for_offsets(bootstrap: str, group: str) -> None:
    connection = await Connection.open(bootstrap)
    while True:
        (answer,) = (await connection.ask(fetch_request(group))).groups
        if not answer.error_code and sum(len(topic.partitions) for topic in answer.topics) == LOADED_PARTITIONS:
            break
        await asyncio.sleep(0.005)
    connection.close()
