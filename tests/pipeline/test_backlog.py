"""What each task gets of the plans that wait."""

from dataclasses import replace

import pytest

from lamina.cleaning.contract import Plan
from lamina.pipeline.backlog import Backlog, Work
from tests.pipeline.engines import a_plan

MEBIBYTE = 1 << 20
LIMIT_BYTES = 128 * MEBIBYTE


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return a_plan(tmp_path_factory.mktemp("model"), keys=1, segments=1, memory_limit_bytes=LIMIT_BYTES)


def plans(model: Plan, *mebibytes: int) -> list[Plan]:
    segments = [(replace(model.segments[0], size_bytes=size * MEBIBYTE),) for size in mebibytes]
    return [replace(model, plan_id=f"{at}", segments=each) for at, each in enumerate(segments)]


def a_backlog(waiting: list[Plan]) -> Backlog:
    backlog = Backlog()
    for plan in waiting:
        backlog.add(plan)
    return backlog


def sizes(work: Work) -> list[int]:
    return [plan.source_bytes // MEBIBYTE for plan in work.plans]


def test_small_logs_go_several_to_a_task_and_the_last_tasks_are_smaller(model: Plan) -> None:
    backlog = a_backlog(plans(model, *[10] * 100))
    counts = []
    while len(backlog):
        counts.append(len(backlog.take(2).plans))
    assert sum(counts) == 100
    assert counts[0] == 12
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 3
    assert len(counts) < 20


def test_the_largest_log_is_begun_first_and_alone(model: Plan) -> None:
    backlog = a_backlog(plans(model, 10, 1000, 10))
    assert sizes(backlog.take(2)) == [1000]
    assert sizes(backlog.take(2)) == [10, 10]


def test_a_log_gets_threads_by_its_share_of_the_bytes(model: Plan) -> None:
    assert a_backlog(plans(model, 1000)).take(4).threads == 4
    assert a_backlog(plans(model, 1000, 1000)).take(4).threads == 2
    backlog = a_backlog(plans(model, 1000, 1))
    assert [backlog.take(4).threads, backlog.take(4).threads] == [4, 1]


def test_tasks_that_begin_together_divide_the_memory(model: Plan) -> None:
    backlog = a_backlog(plans(model, 100, 100, 100, 100))
    first, second = backlog.take(2), backlog.take(2)
    assert first.memory_bytes == second.memory_bytes == LIMIT_BYTES // 2
    backlog.finish(first)
    assert backlog.take(2).memory_bytes == LIMIT_BYTES // 2


def test_beside_one_that_has_all_memory_others_get_a_small_part(model: Plan) -> None:
    """So that a huge log holds nobody up, and all together stay near the limit."""
    huge, small, another = plans(model, 1000, 10, 10)
    backlog = a_backlog([huge])
    work = backlog.take(2)
    assert work.memory_bytes == LIMIT_BYTES
    backlog.add(small)
    assert backlog.take(2).memory_bytes == LIMIT_BYTES // 8
    backlog.finish(work)
    backlog.add(another)
    assert backlog.take(2).memory_bytes == LIMIT_BYTES // 2


def test_logs_with_another_limit_are_in_another_task(model: Plan) -> None:
    first, second = plans(model, 10, 10)
    backlog = a_backlog([first, replace(second, memory_limit_bytes=1)])
    assert [len(backlog.take(2).plans), len(backlog.take(2).plans)] == [1, 1]


def test_what_nobody_wants_any_more_is_not_begun(model: Plan) -> None:
    first, second = plans(model, 20, 10)
    backlog = a_backlog([first, second])
    assert backlog.drop(second.plan_id)
    assert backlog.take(1).plans == (first,)
    assert not backlog.drop(first.plan_id)
    assert not len(backlog)
    assert backlog.begun == [first]


def test_ahead_of_a_free_slot_only_small_logs_are_handed_out(model: Plan) -> None:
    """A large one takes the memory that is there when it begins."""
    first, small, large = plans(model, 10, 10, 100)
    backlog = a_backlog([first])
    assert backlog.is_ready(1)
    work = backlog.take(1)
    assert not backlog.is_ready(1)
    backlog.add(small)
    assert backlog.is_ready(1)
    backlog.add(large)
    assert not backlog.is_ready(1)
    backlog.finish(work)
    assert backlog.is_ready(1)
    assert sizes(backlog.take(1)) == [100]
