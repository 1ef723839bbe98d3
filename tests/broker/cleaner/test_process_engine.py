"""The engine that is a child process: what it is told, and what becomes of plans when it dies."""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import uvloop

from lamina.broker.cleaner import engine_child
from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.cleaning.contract import ContractError, Manifest, Plan
from lamina.cleaning.engine_messages import Answer, Failure, Order, Progress, dump_line, dump_order, load_line
from lamina.cleaning.gather import prepare
from lamina.cleaning.job import carry_out
from lamina.cleaning.kernel_cache import COMPILING, WAITS_FOR_KERNELS
from tests.cleaning.small_passes import a_compacted_log, begin
from tests.pipeline.engines import Hold, a_plan

SAY = "import sys\nline = sys.stdin.readline()\n"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return prepare(begin(a_compacted_log(tmp_path).log))


def run(engine: ProcessEngine, plan: Plan) -> tuple[Answer, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    answer = asyncio.run(engine.clean(plan, lambda *said: told.append(said)))
    return answer, told


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> ProcessEngine:
    """An engine whose child runs this after it has read its plan."""
    (tmp_path / "lamina_test_child.py").write_text(SAY + code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return ProcessEngine("lamina_test_child")


def test_a_plan_is_done_in_a_process_of_its_own(plan: Plan) -> None:
    answer, told = run(ProcessEngine(), plan)
    assert isinstance(answer, Manifest)
    assert answer.plan_id == plan.plan_id
    assert answer.after.records == 3
    assert {total_bytes for _, total_bytes in told} == {plan.source_bytes}


def test_a_child_that_dies_fails_what_it_had_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    engine = child(tmp_path, monkeypatch, "sys.exit('no memory left')")
    answer, _ = run(engine, plan)
    assert answer == Failure(plan.plan_id, "the engine ended with status 1: no memory left")


def test_a_child_that_compiles_kernels_is_waited_for_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    """Until something comes of a plan."""
    begun = {"progress": {"plan_id": plan.plan_id, "done_bytes": 1, "total_bytes": 2}}
    engine = child(
        tmp_path,
        monkeypatch,
        f"print({COMPILING!r}, file=sys.stderr, flush=True)\n"
        f"import pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'seen')!r}).exists(): time.sleep(0.01)\n"
        f"print({json.dumps(begun)!r}, flush=True)\nsys.stdin.read()",
    )

    async def story() -> list[str | None]:
        begins = asyncio.Event()
        before = engine.waits_for()
        cleaning = asyncio.ensure_future(engine.clean(plan, lambda *_: begins.set()))
        while engine.waits_for() is None:
            await asyncio.sleep(0)
        compiling = engine.waits_for()
        (tmp_path / "seen").touch()
        await begins.wait()
        after = engine.waits_for()
        await engine.stop()
        await cleaning
        return [before, compiling, after]

    assert asyncio.run(story()) == [None, WAITS_FOR_KERNELS, None]


def test_a_child_that_says_nonsense_fails_its_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    answer, _ = run(child(tmp_path, monkeypatch, "print('nonsense', flush=True)"), plan)
    assert isinstance(answer, Failure)
    assert "not valid" in answer.reason
    assert not answer.is_uncleanable


@pytest.mark.parametrize("run_loop", [asyncio.run, uvloop.run])
def test_an_order_that_is_ready_only_after_the_child_was_stopped_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, run_loop: Any
) -> None:
    """A pipe that is closed refuses it, and each loop does so with another error."""
    engine = child(tmp_path, monkeypatch, "sys.stdin.read()")
    is_stopped = threading.Event()

    def dump_late(order: Order) -> bytes:
        assert is_stopped.wait(60)
        return dump_order(order)

    monkeypatch.setattr(engine_child, "dump_order", dump_late)

    async def stop_meanwhile() -> Answer:
        cleaning = asyncio.ensure_future(engine.clean(plan, lambda *_: None))
        while not engine.is_running:
            await asyncio.sleep(0)
        await engine.stop()
        is_stopped.set()
        return await cleaning

    assert run_loop(stop_meanwhile()) == Failure(plan.plan_id, "the broker stops")


def test_stopping_ends_the_child_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    engine = child(tmp_path, monkeypatch, "print('{\"progress\":{}}'[:0], end='')\nsys.stdin.read()")

    async def stop_meanwhile() -> Answer:
        cleaning = asyncio.ensure_future(engine.clean(plan, lambda *_: None))
        while not engine.is_running:
            await asyncio.sleep(0)
        await engine.stop()
        return await cleaning

    assert asyncio.run(stop_meanwhile()) == Failure(plan.plan_id, "the broker stops")
    assert run(engine, plan) == (Failure(plan.plan_id, "the broker stops"), [])


def test_plans_that_are_open_at_the_same_time_have_one_child(tmp_path: Path) -> None:
    plans = [a_plan(tmp_path / str(number)) for number in range(3)]
    engine = ProcessEngine()

    async def clean_all() -> list[Answer]:
        return await asyncio.gather(*(engine.clean(plan, lambda *_: None) for plan in plans))

    answers = asyncio.run(clean_all())
    assert [answer.plan_id for answer in answers] == [plan.plan_id for plan in plans]
    assert all(isinstance(answer, Manifest) for answer in answers), answers
    assert not engine.is_running


def test_one_plan_is_cancelled_and_the_others_go_on(tmp_path: Path) -> None:
    """It is stopped where it opens its first source: what it finds there later, nobody wants any more."""
    unwanted, waiting, wanted = (a_plan(tmp_path / name, keys=17 + at) for at, name in enumerate("uvw"))
    hold = Hold(unwanted.pass_folder)
    engine = ProcessEngine()

    async def clean_all() -> list[Answer]:
        cleaning = [asyncio.ensure_future(engine.clean(plan, lambda *_: None)) for plan in (unwanted, waiting, wanted)]
        while not engine.is_running:
            await asyncio.sleep(0)
        await asyncio.to_thread(hold.await_reader)
        engine.cancel(unwanted.plan_id)
        engine.cancel(waiting.plan_id)
        hold.lift()
        return await asyncio.gather(*cleaning)

    answers = asyncio.run(clean_all())
    assert answers[:2] == [Failure(plan.plan_id, "the pass was cancelled") for plan in (unwanted, waiting)]
    assert isinstance(answers[2], Manifest), answers[2]


def test_a_job_that_fails_unexpectedly_ends_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    (tmp_path / "lamina_test_broken.py").write_text(
        "import lamina.cleaning.__main__ as job, sys\n"
        "def broken(*_): raise RuntimeError('a bug')\n"
        "job.carry_out = broken\n"
        "job.run(sys.stdin.buffer, sys.stdout.buffer)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    answer, _ = run(ProcessEngine("lamina_test_broken"), plan)
    assert answer == Failure(plan.plan_id, "the engine ended with status 1: RuntimeError: a bug")


def test_a_cancelled_plan_ends_at_its_next_piece(plan: Plan) -> None:
    assert carry_out(plan, lambda _: None, lambda: True) == Failure(plan.plan_id, "the pass was cancelled")


def test_what_is_lacking_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ProcessEngine().missing() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert ProcessEngine().missing() == 'numba and numpy not installed: pip install "lamina[spark]"'


@pytest.mark.parametrize("said", [Progress("p", 1, 2), Failure("p", "why", is_uncleanable=True)])
def test_what_a_job_says_is_read_as_it_was_meant(said: Progress | Failure) -> None:
    assert load_line(dump_line(said)) == said


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"progress":{}}', b'{"failure":{"plan_id":1}}', b"\xff", b""])
def test_what_no_job_says_is_refused(line: bytes) -> None:
    with pytest.raises(ContractError):
        load_line(line)
