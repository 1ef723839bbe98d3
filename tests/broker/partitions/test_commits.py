"""Waiting for many partitions: no turn of the loop takes them all."""

import asyncio
from itertools import groupby
from pathlib import Path

import pytest

from lamina.broker.partitions import commits
from lamina.broker.partitions.commits import all_committed
from lamina.errors import RequestTimedOut
from lamina.image.topic import Partition as PartitionState
from lamina.records.record import Record, build_batch
from tests.broker.in_process import InProcessBroker


def test_who_waits_for_many_partitions_waits_and_gives_up_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "AT_A_TIME", 2)
    broker = InProcessBroker(tmp_path, {})
    broker.create("t")
    partition = broker.parts.partitions.get("t", 0)
    leader = partition.require_leader()
    partition.lead(PartitionState((1, 2), 1, leader.epoch, (1, 2), (), leader.partition_epoch + 1))
    partition.append_own(build_batch([Record(0, 1, b"k", b"v")]), 1)
    appended = [(partition, partition.commit_point())] * 5

    async def scene() -> list[int]:
        waiting = asyncio.ensure_future(all_committed(appended, broker.parts.clocks, timeout_ms=0))
        waiters = []
        while not waiting.done():
            waiters.append(len(partition._commit_waiters))
            await asyncio.sleep(0)
        assert isinstance(waiting.result()["t", 0], RequestTimedOut)
        return [count for count, _ in groupby(waiters)]

    assert broker.parts.loop.run_until_complete(scene()) == [0, 2, 4, 5, 3, 1, 0]
    broker.close()
