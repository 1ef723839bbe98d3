"""The engine on a real cluster: a standalone master with two workers, each an executor with one slot."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest
from tests.broker.process import SOURCES, BrokerProcess
from tests.pipeline.cluster import Cluster
from tests.pipeline.engines import (
    Hold,
    a_plan,
    an_engine,
    attempts_in,
    clean_all,
    output_of,
    processes_of,
    wait_until,
    writers_in,
)
from tests.pipeline.passes import SLOWLY, CompactedTopic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with Cluster(directory / "cluster") as cluster:
        yield cluster
    assert not processes_of(directory)


def send(number: signal.Signals, pids: set[int]) -> None:
    for pid in pids:
        os.kill(pid, number)


async def with_engine(engine: SparkEngine, story: Callable[[], Awaitable[None]]) -> None:
    try:
        await story()
    finally:
        await engine.stop()


def test_a_cluster_cleans_logs_by_both_ways_and_survives_the_loss_of_its_executors(
    tmp_path: Path, cluster: Cluster
) -> None:
    engine = an_engine(tmp_path / "spark", cluster.master, {"spark.executor.memory": "640m"})

    def executors() -> set[int]:
        return processes_of(cluster.directory, "CoarseGrainedExecutorBackend")

    asyncio.run(with_engine(engine, lambda: _both_ways_and_losses(engine, tmp_path, executors)))
    wait_until(lambda: not processes_of(tmp_path))


async def _both_ways_and_losses(engine: SparkEngine, path: Path, executors: Callable[[], set[int]]) -> None:
    alone = a_plan(path / "alone", keys=1000, segment_bytes=20_000)
    shuffled = a_plan(path / "shuffled", keys=1000, segment_bytes=20_000, memory_limit_bytes=2000)
    answers = await clean_all(engine, alone, shuffled)
    expected = output_of(alone, clean_log(alone, "expected"))
    assert [output_of(plan, answer) for plan, answer in zip([alone, shuffled], answers, strict=True)] == [
        expected,
        expected,
    ]
    assert len(executors()) == 2

    cut = a_plan(path / "cut")
    hold = Hold(cut.pass_folder)
    working = asyncio.ensure_future(clean_all(engine, cut))
    await eventually(hold.is_reached)
    hold.replace()
    send(signal.SIGKILL, executors())
    (answer,) = await working
    assert output_of(cut, answer) == output_of(cut, clean_log(cut, "expected"))

    torn = a_plan(path / "torn", keys=1000, segments=200, segment_bytes=1, throttle_bytes_per_second=4e6)
    working = asyncio.ensure_future(clean_all(engine, torn))
    await eventually(lambda: writers_in(torn.pass_folder))
    send(signal.SIGKILL, executors())
    (answer,) = await working
    assert output_of(torn, answer) == output_of(torn, clean_log(torn, "expected"))
    assert isinstance(answer, Manifest)
    assert attempts_in(torn.pass_folder) > {answer.attempt}, "what a killed attempt wrote is there, under its own name"


def test_a_large_log_goes_to_both_machines_at_once_and_comes_out_as_from_one(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{SOURCES}{os.pathsep}{SOURCES.parent}")
    engine = SparkEngine(
        str(tmp_path / "spark"),
        cluster.master,
        {"spark.executor.memory": "640m"},
        600_000,
        module="tests.pipeline.distributing",
    )
    asyncio.run(with_engine(engine, lambda: _large(engine, tmp_path)))
    wait_until(lambda: not processes_of(tmp_path))


async def _large(engine: SparkEngine, path: Path) -> None:
    large = a_plan(path / "large", keys=1000, segment_bytes=20_000)
    (answer,) = await clean_all(engine, large)
    assert isinstance(answer, Manifest), answer
    assert answer.attempt == "distributed"
    expected = clean_log(large, "expected")
    assert len(expected.groups) > 1
    assert output_of(large, answer) == output_of(large, expected)
    assert (answer.keys, answer.after, answer.dropped) == (expected.keys, expected.after, expected.dropped)
    one_group = a_plan(path / "one group", keys=1000)
    busy = [a_plan(path / f"busy-{number}", keys=1000, segment_bytes=20_000) for number in range(2)]
    answers = [*await clean_all(engine, one_group), *await clean_all(engine, *busy)]
    for plan, each in zip([one_group, *busy], answers, strict=True):
        assert isinstance(each, Manifest), each
        assert each.attempt != "distributed", "there is nothing to divide, or nobody who would be idle"
        assert output_of(plan, each) == output_of(plan, clean_log(plan, "expected"))


def test_of_two_attempts_at_a_slow_task_one_is_put_in_place_and_the_other_leaves_nothing(
    tmp_path: Path, cluster: Cluster
) -> None:
    conf = {
        "executor.memory": "640m",
        "speculation": "true",
        "speculation.interval": "100ms",
        "speculation.task.duration.threshold": "1s",
    }
    given = [f"lamina.spark.conf.spark.{name}={value}" for name, value in conf.items()]
    settings = [f"lamina.spark.master={cluster.master}", "log.cleaner.backoff.ms=50", *given]
    broker = BrokerProcess(tmp_path / "data", *(word for setting in settings for word in ("--set", setting)))
    with broker:
        topic = CompactedTopic(broker)
        topic.write()
        topic.write()
        topic.throttle(SLOWLY)
        topic.compact()
        wait_until(lambda: list(topic.directory.glob(".lamina-pass-*")))
        (folder,) = topic.directory.glob(".lamina-pass-*")
        wait_until(lambda: writers_in(folder))
        slow = writers_in(folder)
        assert slow <= processes_of(cluster.directory)
        send(signal.SIGSTOP, slow)
        (first,) = attempts_in(folder)
        wait_until(lambda: len(attempts_in(folder)) == 2)
        (second,) = attempts_in(folder) - {first}
        wait_until(lambda: topic.passes("cleaned") == 1)
        assert topic.passes("failed") == 0
        assert second != first
        topic.check()
        wait_until(lambda: not slow & processes_of(cluster.directory))
    wait_until(lambda: not processes_of(tmp_path))
