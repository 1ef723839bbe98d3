"""A real Spark engine, started once: everything that one session can show, in one test (a start takes seconds)."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest
from lamina.cleaning.engine_messages import Failure
from lamina.pipeline.tasks import CANCELLED
from tests.pipeline.engines import (
    Hold,
    a_plan,
    an_engine,
    clean_all,
    output_of,
    processes_of,
    wait_until,
    workers_of,
)


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


@pytest.mark.timeout(300)
def test_an_engine_cleans_logs_by_both_ways_and_survives_what_goes_wrong_with_one(tmp_path: Path) -> None:
    asyncio.run(_live(tmp_path))


async def _live(path: Path) -> None:
    home = path / "spark"
    engine = an_engine(home)
    try:
        await _both_ways(path, engine)
        await eventually(lambda: not list((home / "scratch").glob("local/*/*/shuffle_*")))
        await _one_bad_log_among_good_ones(path, engine)
        await _a_killed_worker(path, home, engine)
        await _a_cancelled_pass(path, engine)
        assert not [name for name in os.listdir(path) if name not in {"spark", *_NAMES}]
        (java,) = processes_of(home, "SparkSubmit")
        assert not _listens_beyond_loopback(java)
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(home))
    assert not list((home / "scratch").glob("*"))


_NAMES = {"alone", "shuffled", "good", "damaged", "unlinked", "killed", "beside", "cancelled"}


async def _both_ways(path: Path, engine: SparkEngine) -> None:
    """One log in one task, the same log through the shuffle: the same files as in one process."""
    alone = a_plan(path / "alone", keys=1000, segment_bytes=20_000)
    shuffled = a_plan(path / "shuffled", keys=1000, segment_bytes=20_000, memory_limit_bytes=2000)
    answers = await clean_all(engine, alone, shuffled)
    expected = clean_log(alone, "expected")
    assert len(expected.groups) > 1
    attempts = []
    for plan, answer in zip([alone, shuffled], answers, strict=True):
        assert isinstance(answer, Manifest), answer
        attempts.append(answer.attempt)
        assert output_of(plan, answer) == output_of(alone, expected)
        assert (answer.keys, answer.after, answer.dropped) == (expected.keys, expected.after, expected.dropped)
    assert attempts[1] == "distributed" != attempts[0]


async def _one_bad_log_among_good_ones(path: Path, engine: SparkEngine) -> None:
    good, damaged, unlinked = (a_plan(path / name) for name in ("good", "damaged", "unlinked"))
    source = Path(damaged.pass_folder, damaged.segments[1].log_name)
    data = bytearray(source.read_bytes())
    data[100] ^= 1
    source.write_bytes(data)
    Path(unlinked.pass_folder, unlinked.segments[0].log_name).unlink()
    answers = await clean_all(engine, damaged, good, unlinked)
    assert isinstance(answers[0], Failure)
    assert answers[0].is_uncleanable
    assert source.name in answers[0].reason
    assert isinstance(answers[1], Manifest)
    assert isinstance(answers[2], Failure)
    assert not answers[2].is_uncleanable


async def _a_killed_worker(path: Path, home: Path, engine: SparkEngine) -> None:
    """The task is tried again under another name, and what it left the first time harms nobody."""
    killed, beside = a_plan(path / "killed"), a_plan(path / "beside")
    hold = Hold(killed.pass_folder)
    working = asyncio.ensure_future(clean_all(engine, killed, beside))
    await eventually(hold.is_reached)
    hold.replace()
    # Stopped meanwhile, Java gives the task to no worker that is killed next: two failures would be one too many.
    (java,) = processes_of(home, "SparkSubmit")
    os.kill(java, signal.SIGSTOP)
    for worker in workers_of(home):
        os.kill(worker, signal.SIGKILL)
    os.kill(java, signal.SIGCONT)
    answers = await working
    assert all(isinstance(answer, Manifest) for answer in answers), answers
    assert output_of(killed, answers[0]) == output_of(beside, answers[1])


async def _a_cancelled_pass(path: Path, engine: SparkEngine) -> None:
    plan = a_plan(path / "cancelled")
    hold = Hold(plan.pass_folder)
    working = asyncio.ensure_future(clean_all(engine, plan))
    await eventually(hold.is_reached)
    engine.cancel(plan.plan_id)
    (answer,) = await working
    assert answer == Failure(plan.plan_id, "the pass was cancelled")
    await eventually(Path(plan.pass_folder, CANCELLED).exists)
    hold.lift()


def _listens_beyond_loopback(pid: int) -> list[str]:
    """The sockets of a process that listen where others could reach them."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table, loopback in (("tcp", "0100007F"), ("tcp6", "0000000000000000FFFF00000100007F")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] == "0A" and not fields[1].startswith(loopback):
                found.append(line)
    return found
