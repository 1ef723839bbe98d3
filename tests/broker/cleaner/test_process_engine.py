"""The engine that is a child process: what it is told, and what becomes of plans when it dies."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.cleaning.answers import Answer, Failure, Progress, dump_line, load_line
from lamina.cleaning.contract import ContractError, Manifest, Plan
from lamina.cleaning.gather import prepare
from tests.cleaning.small_passes import a_compacted_log, begin

SAY = "import sys\nfor line in sys.stdin:\n    if not line.strip(): break\n"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return prepare(begin(a_compacted_log(tmp_path).log))


def run(engine: ProcessEngine, *plans: Plan) -> tuple[list[Answer], list[tuple[str, int, int]]]:
    told: list[tuple[str, int, int]] = []
    answers = asyncio.run(engine.clean(plans, lambda *said: told.append(said)))
    return answers, told


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> ProcessEngine:
    """An engine whose child runs this after it has read its plans."""
    (tmp_path / "lamina_test_child.py").write_text(SAY + code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return ProcessEngine("lamina_test_child")


def test_a_plan_is_done_in_a_process_of_its_own(plan: Plan) -> None:
    [answer], told = run(ProcessEngine(), plan)
    assert isinstance(answer, Manifest)
    assert answer.plan_id == plan.plan_id
    assert answer.after.records == 3
    assert {plan_id for plan_id, _, _ in told} == {plan.plan_id}


def test_a_child_that_dies_fails_what_it_had_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    engine = child(tmp_path, monkeypatch, "sys.exit('no memory left')")
    [answer], _ = run(engine, plan)
    assert answer == Failure(plan.plan_id, "the cleaning process ended with status 1: no memory left")


def test_a_child_that_says_nonsense_fails_its_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    [answer], _ = run(child(tmp_path, monkeypatch, "print('nonsense', flush=True)"), plan)
    assert isinstance(answer, Failure)
    assert "what nobody understands" in answer.reason
    assert not answer.is_uncleanable


def test_stopping_ends_the_child_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    engine = child(tmp_path, monkeypatch, "print('{\"progress\":{}}'[:0], end='')\nsys.stdin.read()")

    async def stop_meanwhile() -> list[Answer]:
        cleaning = asyncio.ensure_future(engine.clean([plan], lambda *_: None))
        while engine._process is None:
            await asyncio.sleep(0.001)
        await engine.stop()
        return await cleaning

    assert asyncio.run(stop_meanwhile()) == [Failure(plan.plan_id, "the broker stops")]
    assert asyncio.run(engine.clean([plan], lambda *_: None)) == [Failure(plan.plan_id, "the broker stops")]


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
