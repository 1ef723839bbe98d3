"""What is measured of consumer groups: commits, rebalances, and loading after a restart.

Owns the amounts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from statistics import fmean, median
from typing import Any

from bench.amounts import Amounts
from bench.librdkafka import create_topic, delete_topic
from bench.load import Load, run_load
from bench.members import (
    ClassicMember,
    Connection,
    ConsumerMember,
    commit_request,
    fetch_request,
    find_coordinator,
)
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.subjects import KAFKA, KAFKA_APPEND_LINGER_0, LAMINA, Subject, address, wait_for_answer
from bench.usage import cpu_seconds
from lamina.wire.codec import encode_request

COMMITTERS = 16
LOADING_ROUNDS = 3
REBALANCES = 3
"""In a round, one after the other, of groups of their own."""
MEMBERS = 100
PARTITIONS = 300
LOADED_COMMITS = 200_000
LOADED_PARTITIONS = 100
PATIENCE_SECONDS = 600.0
NO_MEMBER = ("", -1)
VERSUS = {KAFKA: KAFKA, LAMINA: LAMINA}
VERSUS_APPEND_LINGER_0 = {KAFKA: KAFKA_APPEND_LINGER_0, LAMINA: LAMINA}
GROUPS = "Consumer groups"


def group_trials(amounts: Amounts) -> list[Trial]:
    return [
        *(
            Trial(
                name,
                (
                    Figure(GROUPS, f"offset commits, {COMMITTERS} consumers", "/s", "more", linger),
                    Figure(GROUPS, f"p99 of these commits, {COMMITTERS} consumers", "ms", "less", linger),
                ),
                partial(_commits, amounts.load_seconds),
                subjects,
                "commits",
                amounts.warm_up_seconds,
            )
            for name, linger, subjects in (
                ("commits", "Kafka's append linger 5 ms", VERSUS),
                ("commits-append-linger-0", "Kafka's append linger 0", VERSUS_APPEND_LINGER_0),
            )
        ),
        *(
            Trial(
                f"rebalance-{protocol}",
                (
                    Figure(GROUPS, f"rebalance, {MEMBERS} members, {PARTITIONS} partitions", "s", "less", protocol),
                    Figure(GROUPS, "broker's CPU for the rebalance", "s", "less", protocol),
                ),
                partial(_rebalance, protocol),
                VERSUS,
                f"rebalance-{protocol}",
                amounts.warm_up_seconds,
            )
            for protocol in ("classic", "consumer")
        ),
    ]


def loading_trial(amounts: Amounts) -> Trial:
    commits = amounts.count(LOADED_COMMITS)
    loaded: set[str] = set()
    """Brokers that have the commits; every round loads the same."""

    def run(subject: Subject, _: str) -> Values:
        group = "loading"
        if subject.bootstrap not in loaded:
            create_topic(subject.bootstrap, group, partitions=LOADED_PARTITIONS)
            asyncio.run(find_coordinator(subject.bootstrap, group))
            _commit(subject, group, [NO_MEMBER] * LOADED_PARTITIONS, PATIENCE_SECONDS, commits)
            loaded.add(subject.bootstrap)
        subject.stop()
        began = time.perf_counter()
        subject.launch()
        wait_for_answer(subject)
        asyncio.run(_wait_for_offsets(subject.bootstrap, group))
        return (time.perf_counter() - began,)

    name = f"restart with {commits:,} commits until a group's offsets are there"
    return Trial("loading", (Figure(GROUPS, name, "s", "less"),), run, VERSUS, most_rounds=LOADING_ROUNDS)


def _commits(seconds: float, subject: Subject, topic: str) -> Values:
    """Members of one group, each with one commit of one partition on its way."""
    create_topic(subject.bootstrap, topic, partitions=COMMITTERS)
    members = asyncio.run(_members_of(subject.bootstrap, topic))
    done = _commit(subject, topic, members, seconds)
    delete_topic(subject.bootstrap, topic)
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
    return run_load([address(subject)], frames, error_at, seconds, count)


def _rebalance(protocol: str, subject: Subject, topic: str) -> Values:
    """The median time, and the CPU seconds of one: the kernel counts them in hundredths."""
    create_topic(subject.bootstrap, topic, partitions=PARTITIONS)
    found = [asyncio.run(_join_all(protocol, subject, topic, f"{topic}-{number}")) for number in range(REBALANCES)]
    delete_topic(subject.bootstrap, topic)
    return median(seconds for seconds, _ in found), fmean(spent for _, spent in found)


async def _join_all(protocol: str, subject: Subject, topic: str, group: str) -> tuple[float, float]:
    """From the last join to the last assignment, and the broker's CPU seconds meanwhile."""
    await find_coordinator(subject.bootstrap, group)
    connections = [await Connection.open(subject.bootstrap) for _ in range(MEMBERS)]
    members: list[Any] = [
        ClassicMember(connection, group, topic, PARTITIONS)
        if protocol == "classic"
        else ConsumerMember(connection, group, topic)
        for connection in connections
    ]
    is_done = _is_classic_done if protocol == "classic" else _is_consumer_done
    cpu_before = cpu_seconds(*subject.process_ids)
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
    spent = cpu_seconds(*subject.process_ids) - cpu_before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for connection in connections:
        connection.close()
    return seconds, spent


def _is_classic_done(members: Sequence[ClassicMember]) -> bool:
    generations = {member.generation for member in members if member.is_assigned}
    leaders = [member for member in members if member.member_count == MEMBERS]
    return len(generations) == 1 and bool(leaders) and all(member.is_assigned for member in members)


def _is_consumer_done(members: Sequence[ConsumerMember]) -> bool:
    share = PARTITIONS // MEMBERS
    return all(member.owned_count == share for member in members)


async def _wait_for_offsets(bootstrap: str, group: str) -> None:
    connection = await Connection.open(bootstrap)
    while True:
        (answer,) = (await connection.ask(fetch_request(group))).groups
        if not answer.error_code and sum(len(topic.partitions) for topic in answer.topics) == LOADED_PARTITIONS:
            break
        await asyncio.sleep(0.005)
    connection.close()
