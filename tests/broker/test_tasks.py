"""A task is held until it is done, and some work goes on to its end whoever gives up."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from lamina.broker.tasks import Tasks, to_its_end


def run(scenario: Coroutine[Any, Any, None]) -> list[dict[str, Any]]:
    """What asyncio complained of meanwhile, with nobody to tell it to."""
    complaints: list[dict[str, Any]] = []

    async def heard() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await scenario

    asyncio.run(heard())
    return complaints


async def value_after(event: asyncio.Event, value: str) -> str:
    await event.wait()
    return value


async def error_after(event: asyncio.Event) -> None:
    await event.wait()
    raise ValueError("it failed")


def test_tasks_are_held_in_their_order_until_they_are_done() -> None:
    async def scenario() -> None:
        tasks, first, second = Tasks(), asyncio.Event(), asyncio.Event()
        one, two = tasks.begin(value_after(first, "one")), tasks.begin(value_after(second, "two"))
        assert list(tasks) == [one, two]
        first.set()
        assert await one == "one"
        assert list(tasks) == [two]
        second.set()
        await tasks.wait()
        assert len(tasks) == 0

    assert run(scenario()) == []


def test_tasks_of_a_loop_can_begin_before_it_runs() -> None:
    loop = asyncio.new_event_loop()
    try:
        go = asyncio.Event()
        go.set()
        assert loop.run_until_complete(Tasks(loop).begin(value_after(go, "done"))) == "done"
    finally:
        loop.close()


def test_cancelled_tasks_are_waited_for_as_others_are() -> None:
    async def scenario() -> None:
        tasks, never = Tasks(), asyncio.Event()
        begun = [tasks.begin(value_after(never, "")) for _ in range(3)]
        tasks.cancel()
        await tasks.wait()
        assert all(task.cancelled() for task in begun)
        assert list(tasks) == []

    assert run(scenario()) == []


def test_work_is_finished_though_whoever_waits_for_it_gives_up() -> None:
    async def scenario() -> None:
        tasks, go = Tasks(), asyncio.Event()
        waiting = asyncio.ensure_future(tasks.finish(value_after(go, "done")))
        await asyncio.sleep(0)
        (task,) = tasks
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await tasks.wait()
        assert task.result() == "done"

    assert run(scenario()) == []


def test_an_error_is_raised_where_somebody_waits() -> None:
    async def scenario() -> None:
        go = asyncio.Event()
        go.set()
        with pytest.raises(ValueError, match="it failed"):
            await Tasks().finish(error_after(go))
        with pytest.raises(ValueError, match="it failed"):
            await to_its_end(asyncio.ensure_future(error_after(go)))

    assert run(scenario()) == []


def test_an_error_that_nobody_waits_for_any_more_is_no_complaint_of_the_loop() -> None:
    async def scenario() -> None:
        tasks, go = Tasks(), asyncio.Event()
        waiting = asyncio.ensure_future(tasks.finish(error_after(go)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        while tasks:
            await asyncio.sleep(0)

    assert run(scenario()) == []
