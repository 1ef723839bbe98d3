"""The engine on a real cluster: a standalone master with two workers, each an executor with one slot."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest
from tests.pipeline.cluster import Cluster
from tests.pipeline.engines import Hold, a_plan, an_engine, clean_all, output_of, processes_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


def test_a_cluster_cleans_logs_by_both_ways_and_survives_the_loss_of_an_executor(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        asyncio.run(_live(tmp_path, cluster))
    assert not processes_of(tmp_path)


async def _live(path: Path, cluster: Cluster) -> None:
    engine = an_engine(path / "spark", cluster.master, executor_memory="640m")
    try:
        alone = a_plan(path / "alone", keys=1000, segment_bytes=20_000)
        shuffled = a_plan(path / "shuffled", keys=1000, segment_bytes=20_000, memory_limit_bytes=2000)
        answers = await clean_all(engine, alone, shuffled)
        expected = output_of(alone, clean_log(alone, "expected"))
        assert [output_of(plan, answer) for plan, answer in zip([alone, shuffled], answers, strict=True)] == [
            expected,
            expected,
        ]
        assert len(processes_of(path, "CoarseGrainedExecutorBackend")) == 2

        cut = a_plan(path / "cut")
        hold = Hold(cut)
        working = asyncio.ensure_future(clean_all(engine, cut))
        await eventually(hold.is_reached)
        hold.replace()
        for executor in processes_of(path, "CoarseGrainedExecutorBackend"):
            os.kill(executor, signal.SIGKILL)
        (answer,) = await working
        assert isinstance(answer, Manifest), answer
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(path, "CoarseGrainedExecutorBackend"))
