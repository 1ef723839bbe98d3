"""A response that is made when what it waits for has come."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.request import Response
from lamina.errors import KafkaError, NotLeaderOrFollower

ANSWER: Response = [b"answer"]


def run(scenario: Callable[[LaterResponse], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await scenario(LaterResponse(asyncio.get_running_loop()))

    asyncio.run(main())


def fails() -> Response:
    raise NotLeaderOrFollower("no such luck")


def test_it_is_told_in_the_turn_in_which_it_is_made() -> None:
    async def scenario(later: LaterResponse) -> None:
        told: list[Response] = []
        later.tell(lambda made: told.append(made.result()))
        later.finish(lambda: ANSWER)
        assert told == [ANSWER]
        assert await later == ANSWER

    run(scenario)


def test_it_is_made_once() -> None:
    async def scenario(later: LaterResponse) -> None:
        later.finish(lambda: ANSWER)
        later.finish(fails)
        assert later.result() == ANSWER

    run(scenario)


def test_an_error_is_told_as_its_guard_says() -> None:
    async def scenario(later: LaterResponse) -> None:
        errors: list[Exception] = []

        def made_from(error: Exception) -> Response:
            errors.append(error)
            return ANSWER

        later.guard(made_from)
        later.finish(fails)
        assert later.result() == ANSWER
        assert [type(error) for error in errors] == [NotLeaderOrFollower]

    run(scenario)


def test_without_a_guard_an_error_is_raised_to_who_waits() -> None:
    async def scenario(later: LaterResponse) -> None:
        later.finish(fails)
        with pytest.raises(KafkaError, match="no such luck"):
            await later

    run(scenario)


@pytest.mark.parametrize("is_good", [True, False])
def test_it_may_take_turns_to_make(*, is_good: bool) -> None:
    async def scenario(later: LaterResponse) -> None:
        async def work() -> Response:
            await asyncio.sleep(0)
            return ANSWER if is_good else fails()

        told: list[LaterResponse] = []
        later.tell(told.append)
        later.guard(lambda error: [str(error).encode()])
        later.finish(work)
        assert not told
        assert await later == (ANSWER if is_good else [b"no such luck"])
        assert told == [later]

    run(scenario)


def test_who_sends_it_is_told_that_its_work_was_cancelled() -> None:
    """By something else than who sends it, such as a thread that ends: the connection must not wait for ever."""

    async def scenario(later: LaterResponse) -> None:
        told: list[bool] = []
        later.tell(lambda made: told.append(made.cancelled()))

        async def work() -> Response:
            raise asyncio.CancelledError

        later.finish(work)
        for _ in range(3):
            await asyncio.sleep(0)
        assert told == [True]

    run(scenario)


@pytest.mark.parametrize("has_begun", [True, False])
def test_who_gives_up_leaves_nothing_that_waits(*, has_begun: bool) -> None:
    async def scenario(later: LaterResponse) -> None:
        ended: list[str] = []

        async def work() -> Response:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")
            return ANSWER

        later.give_up = lambda: ended.append("wait")
        if has_begun:
            later.finish(work)
            await asyncio.sleep(0)
        later.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert ended == (["work"] if has_begun else ["wait"])
        assert later.cancelled()
        later.finish(fails)

    run(scenario)
