"""A follower leaves throttled partitions out of its requests while it is above its quota (R78)."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.partitions.partition import Partition
from lamina.settings.log_config import ThrottledReplicas
from lamina.settings.resolve import resolve_broker
from tests.broker.replication.following_broker import NODE, FollowingBroker

Scenario = Callable[[FollowingBroker], Coroutine[Any, Any, None]]
EVERY = ThrottledReplicas(is_every=True)
NEVER = "0"
"""A rate that the first bytes exceed, for as long as they are remembered."""


def run(tmp_path: Path, scenario: Scenario, rate: str = NEVER) -> None:
    async def main() -> None:
        settings = {"follower_replication_throttled_rate": rate, "replica_fetch_max_bytes": "200"}
        async with FollowingBroker(tmp_path, **settings) as broker:
            await asyncio.wait_for(scenario(broker), 60)

    asyncio.run(main())


def replica(broker: FollowingBroker, index: int, throttled: ThrottledReplicas) -> Partition:
    """A follower of a log of some batches, of which each request gets one."""
    builder = broker.lead(index=index, throttled_followers=throttled)
    for number in range(10):
        builder.append(b"%d" % number * 100)
    partition = broker.replica(index=index)
    broker.follow(partition)
    return partition


def unthrottle(partition: Partition) -> None:
    partition.configure(replace(partition.log.config, throttled_followers=ThrottledReplicas()), 1 << 20)


def test_only_the_throttled_partition_waits(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        held = replica(broker, 0, EVERY)
        free = replica(broker, 1, ThrottledReplicas(replicas=frozenset({(0, NODE), (1, NODE + 1)})))
        await broker.until(lambda: broker.counters.replication.throttled_fetches > 0)
        await broker.caught_up(free)
        assert 0 < held.log.log_end_offset < 10
        copied = broker.counters.replication.throttled_in_bytes
        assert copied >= held.log.size_bytes(), "an answer may end inside a batch"
        keys = {key for request in broker.leader.fetches()[-3:] for topic in request.topics for key in topic.partitions}
        assert all(asked.partition_index == 1 for asked in keys)
        unthrottle(held)
        await broker.caught_up(held)
        assert broker.counters.replication.throttled_in_bytes == copied

    run(tmp_path, scenario)


def test_another_rate_holds_from_the_next_second_on(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        held = replica(broker, 0, ThrottledReplicas(replicas=frozenset({(0, NODE)})))
        await broker.until(lambda: broker.counters.replication.throttled_fetches > 0)
        broker.throttles.settings_changed(resolve_broker(sets={"follower.replication.throttled.rate": "1000000000"}))
        await broker.caught_up(held)

    run(tmp_path, scenario)


def test_a_replica_that_has_all_that_is_committed_is_fetched_on(tmp_path: Path) -> None:
    """It may be in sync: it would leave the in-sync set."""

    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead(throttled_followers=EVERY)
        builder.append(b"one")
        partition = broker.replica()
        broker.led().high_watermark = 1
        broker.follow(partition)
        await broker.caught_up(partition)
        for number in range(2, 6):
            builder.append(b"another")
            broker.leader.grown()
            await broker.until(lambda number=number: partition.log.log_end_offset == number)  # type: ignore[misc]
        assert broker.counters.replication.throttled_fetches == 0

    run(tmp_path, scenario)


@pytest.mark.parametrize("rate", ["1000", "100000"])
def test_everything_comes_in_the_end(tmp_path: Path, rate: str) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition = replica(broker, 0, EVERY)
        await broker.caught_up(partition)
        assert broker.counters.replication.throttled_in_bytes >= partition.log.size_bytes()

    run(tmp_path, scenario, rate)
