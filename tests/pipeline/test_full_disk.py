"""A disk that becomes really full in a pass of a real Spark: that pass fails, with one sentence, and nothing else."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Failure
from tests.broker.process import BrokerProcess
from tests.pipeline.engines import a_plan, an_engine, clean_all, processes_of, wait_until
from tests.pipeline.passes import SLOWLY, CompactedTopic
from tests.small_disk import SmallDisk, a_small_disk

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

MEGABYTE = 1 << 20
SCRATCH_IS_FULL = "Spark's scratch disk is full (lamina.spark.conf.spark.local.dir names another)"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with a_small_disk(tmp_path / "disk", 16 * MEGABYTE) as disk:
        yield disk


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


@pytest.mark.parametrize(
    ("keep_free_bytes", "sentence"),
    [(0, "No space left on device"), (4 * MEGABYTE, "became too full for the pass")],
    ids=["to the last byte", "to what is to stay free"],
)
def test_a_disk_that_fills_up_in_a_pass_fails_it_and_no_other_until_there_is_room(
    tmp_path: Path, disk: SmallDisk, keep_free_bytes: int, sentence: str
) -> None:
    log_dirs = [disk.path / "logs", tmp_path / "logs"]
    settings = {
        "log.dirs": ",".join(map(str, log_dirs)),
        "lamina.disk.free.min.bytes": str(keep_free_bytes),
        "lamina.spark.master": "local[2]",
        "log.cleaner.backoff.ms": "50",
    }
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with BrokerProcess(tmp_path / "data", *given) as broker:
        topics = [CompactedTopic(broker, name, *log_dirs) for name in ("a", "b")]
        small, large = sorted(topics, key=lambda topic: not topic.directory.is_relative_to(disk.path))
        assert not large.directory.is_relative_to(disk.path)
        small.throttle(SLOWLY)  # The disk has to be full before the pass has written what it wants to write.
        for topic in topics:
            topic.write()
            topic.compact()
        wait_until(lambda: small.row()["phase"] == "cleaning")
        filler = disk.fill(but_bytes=keep_free_bytes + 300_000)
        wait_until(lambda: small.row()["error"])
        assert sentence in small.row()["error"]
        assert str(small.directory) in small.row()["error"]
        assert not small.row()["is_uncleanable"]
        wait_until(lambda: large.passes("cleaned") == 1)
        for topic in topics:
            topic.write(100)
            topic.check()
        filler.unlink()
        small.throttle(None)
        small.compact_now()
        broker.restart()
        for topic in topics:
            topic.check()
    assert not [line for line in broker.log if "Traceback" in line or "offline" in line], broker.log


def test_a_full_scratch_disk_fails_what_goes_through_the_shuffle_and_nothing_else(
    tmp_path: Path, disk: SmallDisk
) -> None:
    asyncio.run(_fill_scratch(tmp_path, disk))


async def _fill_scratch(path: Path, disk: SmallDisk) -> None:
    engine = an_engine(path / "spark", conf={"spark.local.dir": str(disk.path)})

    def shuffled(name: str) -> Plan:
        return a_plan(path / name, keys=20_000, memory_limit_bytes=2000)

    try:
        (warm,) = await clean_all(engine, shuffled("warm"))
        assert isinstance(warm, Manifest), warm
        filler = disk.fill(but_bytes=100_000)
        alone, full = a_plan(path / "alone"), shuffled("full")
        answers = await clean_all(engine, alone, full)
        by_plan = {answer.plan_id: answer for answer in answers}
        assert isinstance(by_plan[alone.plan_id], Manifest)
        assert by_plan[full.plan_id] == Failure(full.plan_id, SCRATCH_IS_FULL)
        assert engine.is_running
        filler.unlink()
        (again,) = await clean_all(engine, shuffled("again"))
        assert isinstance(again, Manifest), again
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(path))
    assert [name for name in os.listdir(disk.path) if "filler" not in name] == []


def test_a_spark_that_cannot_start_for_want_of_room_says_so_and_starts_when_there_is_some(
    tmp_path: Path, disk: SmallDisk
) -> None:
    asyncio.run(_start_without_room(tmp_path, disk))


async def _start_without_room(path: Path, disk: SmallDisk) -> None:
    filler = disk.fill()
    engine = an_engine(disk.path / "spark")
    try:
        (answer,) = await clean_all(engine, a_plan(path / "first"))
        assert isinstance(answer, Failure)
        assert "Spark could not be started on local[2]: " in answer.reason
        assert "No space left on device" in answer.reason
        filler.unlink()
        await eventually(lambda: not engine.is_running)
        (answer,) = await clean_all(engine, a_plan(path / "second"))
        assert isinstance(answer, Manifest), answer
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(disk.path))
