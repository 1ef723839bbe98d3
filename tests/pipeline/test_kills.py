"""What is left when a part of Spark, or the broker, is killed in a pass (F9): nothing, and the next one works.

Each test starts Spark of its own, so they run apart (``make peers-spark``).
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.cleaning.contract import Manifest
from lamina.cleaning.engine_messages import Clean, Failure, Start, dump_order
from tests.broker.process import SOURCES
from tests.pipeline.engines import Hold, HoldRewriting, a_plan, an_engine, clean_all, processes_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


@pytest.mark.parametrize("memory_limit_bytes", [1 << 24, 2000], ids=["one task", "shuffle"])
@pytest.mark.parametrize("word", ["SparkSubmit", "lamina.pipeline"], ids=["java", "engine"])
def test_an_engine_that_is_killed_fails_the_pass_and_the_next_one_has_a_new_engine(
    tmp_path: Path, word: str, memory_limit_bytes: int
) -> None:
    asyncio.run(_kill_and_go_on(tmp_path, word, memory_limit_bytes))


async def _kill_and_go_on(path: Path, word: str, memory_limit_bytes: int) -> None:
    home = path / "spark"
    engine = an_engine(home)
    try:
        (warm,) = await clean_all(engine, a_plan(path / "warm"))
        assert isinstance(warm, Manifest)
        plan = a_plan(path / "cut", keys=1000, memory_limit_bytes=memory_limit_bytes)
        hold = Hold(plan.pass_folder) if memory_limit_bytes > 2000 else HoldRewriting(plan)
        working = asyncio.ensure_future(clean_all(engine, plan))
        await eventually(hold.is_reached)
        first = processes_of(home)
        for pid in processes_of(home, word) if word == "SparkSubmit" else {engine_pid(engine)}:
            os.kill(pid, signal.SIGKILL)
        (answer,) = await working
        assert isinstance(answer, Failure)
        assert not answer.is_uncleanable
        await eventually(lambda: not processes_of(home) & first)
        again = a_plan(path / "again", keys=1000, memory_limit_bytes=memory_limit_bytes)
        (answer,) = await clean_all(engine, again)
        assert isinstance(answer, Manifest), answer
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(home))


def engine_pid(engine: object) -> int:
    pid: int = engine._child._process.pid  # type: ignore[attr-defined]
    return pid


@pytest.mark.parametrize("is_starting", [True, False], ids=["while Spark starts", "in a pass"])
def test_a_broker_that_is_killed_takes_the_engine_and_its_java_with_it(tmp_path: Path, is_starting: bool) -> None:
    home = tmp_path / "spark"
    plan = a_plan(tmp_path / "log")
    hold = Hold(plan.pass_folder)
    orders = dump_order(Start("local[2]", (), str(home))) + dump_order(Clean(plan))
    broker = subprocess.Popen(
        [sys.executable, "-c", _BROKER, orders.decode()], env={**os.environ, "PYTHONPATH": str(SOURCES)}
    )
    try:
        if is_starting:
            wait_until(lambda: processes_of(home, "SparkSubmit"))
        else:
            wait_until(hold.is_reached)
    finally:
        broker.kill()
        broker.wait()
    wait_until(lambda: not processes_of(home))


_BROKER = """
import subprocess, sys, time
engine = subprocess.Popen([sys.executable, "-m", "lamina.pipeline"], stdin=subprocess.PIPE, start_new_session=True)
engine.stdin.write(sys.argv[1].encode())
engine.stdin.flush()
time.sleep(600)
"""


def test_an_idle_engine_stops_and_leaves_the_next_start_a_class_archive(tmp_path: Path) -> None:
    asyncio.run(_idle(tmp_path))


async def _idle(path: Path) -> None:
    home = path / "spark"
    engine = an_engine(home, idle_stop_ms=1)
    try:
        (answer,) = await clean_all(engine, a_plan(path / "first"))
        assert isinstance(answer, Manifest)
        await eventually(lambda: not engine.is_running)
        await eventually(lambda: list(home.glob("classes-*.jsa")) and not processes_of(home))
        (answer,) = await clean_all(engine, a_plan(path / "second"))
        assert isinstance(answer, Manifest)
    finally:
        await engine.stop()
    await eventually(lambda: not processes_of(home))
    assert [name.split("-")[0] for name in os.listdir(home)] == ["classes"]
