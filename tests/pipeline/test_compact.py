"""How passes become jobs, with a Spark that is only played: each job is done by the thread that asks for it."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.failures import TooManyKeys
from lamina.pipeline.compact import Compaction
from tests.pipeline.engines import a_plan

SECONDS = 30.0


class Job:
    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows

    def flatMap(self, work: Callable[[Any], Iterable[Any]]) -> "Job":  # noqa: N802
        return Job(done for row in self._rows for done in work(row))

    def collect(self) -> list[Any]:
        return list(self._rows)


class PlayedSession:
    """Of one machine, with two slots."""

    directory = "/engine"
    master = "local[2]"
    slots = 2
    is_local = True
    is_alive = True

    def __init__(self) -> None:
        self.context = self
        self.jobs = 0

    def parallelize(self, rows: list[Any], _count: int) -> Job:
        self.jobs += 1
        return Job(rows)

    def forget_shuffles(self) -> None:
        """There are none."""


class Played:
    """A compaction whose tasks do what a test says, and the answers that came."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = PlayedSession()
        self.given: list[tuple[Plan, int]] = []
        """What tasks were given: plans and threads."""
        self.task: Callable[[Plan], Answer | TooManyKeys] = answered
        self.answers: SimpleQueue[Answer] = SimpleQueue()
        self.ended: SimpleQueue[Exception] = SimpleQueue()
        monkeypatch.setattr("lamina.pipeline.compact.clean_alone", self._clean_alone)
        self.compaction = Compaction(self.session, self.answers.put, self.ended.put)  # type: ignore[arg-type]

    def _clean_alone(self, plan: Plan, threads: int) -> Answer | TooManyKeys:
        self.given.append((plan, threads))
        return self.task(plan)

    def answer(self) -> Answer:
        return self.answers.get(timeout=SECONDS)


def answered(plan: Plan) -> Answer:
    return Failure(plan.plan_id, "as I was told")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(monkeypatch)


@pytest.fixture
def plans(tmp_path: Path) -> list[Plan]:
    model = a_plan(tmp_path, keys=1, segments=1, throttle_bytes_per_second=10.0)
    return [replace(model, plan_id=f"p{number}") for number in range(4)]


def test_a_log_that_takes_long_holds_nobody_up(played: Played, plans: list[Plan]) -> None:
    over, begun = threading.Event(), threading.Event()

    def task(plan: Plan) -> Answer:
        if plan.plan_id == "p0":
            begun.set()
            assert over.wait(SECONDS)
        return answered(plan)

    played.task = task
    played.compaction.add(plans[0])
    assert begun.wait(SECONDS)
    for plan in plans[1:]:
        played.compaction.add(plan)
    assert {played.answer().plan_id for _ in plans[1:]} == {"p1", "p2", "p3"}
    over.set()
    assert played.answer().plan_id == "p0"


def test_logs_that_wait_go_together_and_one_that_fails_its_task_fails_alone(played: Played, plans: list[Plan]) -> None:
    """A worker that dies takes all logs of its task with it: they are done again one by one."""
    held, begun = threading.Event(), threading.Semaphore(0)

    def task(plan: Plan) -> Answer:
        if plan.plan_id.startswith("hold"):
            begun.release()
            assert held.wait(SECONDS)
        if plan.plan_id == "p1":
            raise RuntimeError("the worker is gone")
        return answered(plan)

    played.task = task
    for number in range(PlayedSession.slots + 1):  # So that nobody is free while the others come.
        played.compaction.add(replace(plans[0], plan_id=f"hold{number}"))
        assert begun.acquire(timeout=SECONDS)
    for plan in plans:
        played.compaction.add(plan)
    held.set()
    answers = {answer.plan_id: answer for answer in (played.answer() for _ in range(7))}
    assert isinstance(answers["p1"], Failure)
    assert "the worker is gone" in answers["p1"].reason
    assert not answers["p1"].is_uncleanable
    assert answers["p0"] == answered(plans[0])
    assert answers["p3"] == answered(plans[3])
    assert played.session.jobs == 3 + 1 + 4


def test_a_log_with_too_many_keys_goes_through_the_shuffle_with_its_whole_limit(
    played: Played, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed: list[Plan] = []

    def clean_distributed(_context: object, plan: Plan, slots: int) -> Answer:
        assert slots == 2
        distributed.append(plan)
        return answered(plan)

    monkeypatch.setattr("lamina.pipeline.compact.clean_distributed", clean_distributed)
    played.task = lambda _plan: TooManyKeys("too many")
    played.compaction.add(plans[0])
    assert played.answer() == answered(plans[0])
    assert distributed[0].memory_limit_bytes == plans[0].memory_limit_bytes // 2


def test_fact_97_tasks_of_one_machine_keep_to_one_limit_and_those_of_a_cluster_have_a_part(
    played: Played, plans: list[Plan]
) -> None:
    """And only where the machine is the broker's own does the broker's fsync do for the job's."""
    played.compaction.add(plans[0])
    played.answer()
    played.session.is_local = False
    played.compaction.add(plans[1])
    played.answer()
    (here, here_threads), (there, there_threads) = played.given
    assert (here.throttle_bytes_per_second, here.throttle_path) == (10.0, "/engine/scratch/throttle")
    assert (there.throttle_bytes_per_second, there.throttle_path) == (10.0, None)
    assert (here.job_syncs, there.job_syncs) == (False, True)
    assert (here_threads, there_threads) == (2, 1)


def test_what_is_dropped_before_it_begins_is_never_given_to_a_task(played: Played, plans: list[Plan]) -> None:
    over, begun = threading.Event(), threading.Semaphore(0)

    def task(plan: Plan) -> Answer:
        begun.release()
        assert over.wait(SECONDS)
        return answered(plan)

    played.task = task
    for plan in plans[:3]:
        played.compaction.add(plan)
        assert begun.acquire(timeout=SECONDS)
    played.compaction.add(plans[3])
    assert {plan.plan_id for plan in played.compaction.begun} == {"p0", "p1", "p2"}
    assert played.compaction.drop("p3")
    assert not played.compaction.drop("p0")
    over.set()
    assert {played.answer().plan_id for _ in range(3)} == {"p0", "p1", "p2"}
    assert "p3" not in {plan.plan_id for plan, _ in played.given}


def test_when_spark_is_gone_nobody_is_answered_and_the_engine_is_told(played: Played, plans: list[Plan]) -> None:
    def task(_plan: Plan) -> Answer:
        played.session.is_alive = False
        raise RuntimeError("gone")

    played.task = task
    played.compaction.add(plans[0])
    assert "Spark ended" in str(played.ended.get(timeout=SECONDS))
    assert played.answers.empty()
