"""Questions to other brokers: together, one request in flight to each, and everybody gets the answer to its own."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.broker.coordination.broker_batches import BrokerBatches, nobody_else
from lamina.errors import KafkaError, NetworkError
from lamina.peer.call import MessageCall


class Asked:
    """A request that waits for its response."""

    def __init__(self, broker_id: int, questions: list[int]) -> None:
        self.broker_id = broker_id
        self.questions = questions
        self.response: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    def answer(self) -> None:
        self.response.set_result([10 * one for one in self.questions])


class Links:
    """Requests in flight, answered when the test says so."""

    def __init__(self, max_questions: int = 3) -> None:
        self.in_flight: list[Asked] = []
        self.sizes: list[int] = []
        self.batches: BrokerBatches[int, int] = BrokerBatches(
            self._ask, self._call, lambda questions, response: response, asyncio.get_running_loop(), max_questions
        )

    def _call(self, questions: Sequence[int]) -> Any:
        return list(questions)

    async def _ask(self, broker_id: int, call: Any) -> Any:
        asked = Asked(broker_id, call)
        assert broker_id not in [one.broker_id for one in self.in_flight], "one in flight to each broker"
        self.in_flight.append(asked)
        self.sizes.append(len(call))
        try:
            return await asked.response
        finally:
            self.in_flight.remove(asked)


async def turn() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


def test_what_waits_for_one_broker_goes_together() -> None:
    async def scene() -> None:
        links = Links(max_questions=3)
        answers = [links.batches.ask(2, number) for number in range(5)]
        other = links.batches.ask(3, 7)
        await turn()
        assert sorted((one.broker_id, one.questions) for one in links.in_flight) == [(2, [0, 1, 2]), (3, [7])]
        late = links.batches.ask(2, 9)
        while links.in_flight:
            links.in_flight[0].answer()
            await turn()
        assert [await one for one in (*answers, other, late)] == [0, 10, 20, 30, 40, 70, 90]
        assert links.sizes == [3, 1, 3]
        assert not links.batches._asking

    asyncio.run(scene())


def test_a_broker_that_does_not_answer_is_told_to_all_who_asked_and_asked_again_later() -> None:
    async def scene() -> None:
        links = Links()
        answers = [links.batches.ask(2, number) for number in range(2)]
        await turn()
        links.in_flight[0].response.set_exception(NetworkError("gone"))
        for one in answers:
            with pytest.raises(NetworkError, match="broker 2 gave no answer: gone"):
                await one
        again = links.batches.ask(2, 5)
        await turn()
        links.in_flight[0].answer()
        assert await again == 50

    asyncio.run(scene())


def test_a_response_that_does_not_fit_is_no_answer() -> None:
    async def scene() -> None:
        links = Links()
        links.batches._read = lambda questions, response: response[1:]
        answer = links.batches.ask(2, 1)
        await turn()
        links.in_flight[0].answer()
        with pytest.raises(NetworkError):
            await answer

    asyncio.run(scene())


def test_who_went_away_is_not_asked_for() -> None:
    async def scene() -> None:
        links = Links()
        first, second, third = (links.batches.ask(2, number) for number in range(3))
        second.cancel()
        await turn()
        assert links.in_flight[0].questions == [0, 2]
        third.cancel()
        links.in_flight[0].answer()
        assert await first == 0

    asyncio.run(scene())


def test_a_broker_that_is_alone_asks_nobody() -> None:
    with pytest.raises(NetworkError):
        asyncio.run(_asked_alone())


async def _asked_alone() -> None:
    await nobody_else(2, MessageCall(27, range(1, 2)))


events = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 3)),
        st.tuples(st.just("answer"), st.integers(0, 2)),
        st.tuples(st.just("fail"), st.integers(0, 2)),
        st.tuples(st.just("go away"), st.integers(0, 30)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    max_size=40,
)


@given(events, st.integers(1, 4))
def test_in_any_order_everybody_gets_its_own_answer_or_an_error(happens: list[tuple[str, int]], at_most: int) -> None:
    async def scene() -> None:
        links = Links(max_questions=at_most)
        asked: list[asyncio.Future[int]] = []
        for what, which in happens:
            if what == "ask":
                asked.append(links.batches.ask(which, len(asked)))
            elif what == "go away" and which < len(asked):
                asked[which].cancel()
            elif what in ("answer", "fail") and which < len(links.in_flight):
                request = links.in_flight[which]
                if request.response.done():
                    continue
                if what == "answer":
                    request.answer()
                else:
                    request.response.set_exception(NetworkError("gone"))
            elif what == "turn":
                await turn()
        await turn()
        while links.in_flight:
            for request in list(links.in_flight):
                if not request.response.done():
                    request.answer()
            await turn()
        for number, one in enumerate(asked):
            assert one.done()
            if not one.cancelled():
                assert isinstance(one.exception(), KafkaError) or one.result() == 10 * number
        assert all(size <= at_most for size in links.sizes)
        assert not links.batches._asking
        assert not links.batches._waiting

    asyncio.run(scene())


def test_whoever_waits_when_the_broker_stops_is_told_so() -> None:
    async def scene() -> None:
        links = Links(max_questions=2)
        answers = [links.batches.ask(2, number) for number in range(3)]
        await turn()
        assert [one.questions for one in links.in_flight] == [[0, 1]]
        await links.batches.close()
        told = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 5)
        assert [str(one) for one in told] == ["broker 2 gave no answer: this broker stops"] * 3
        assert {type(one) for one in told} == {NetworkError}

    asyncio.run(scene())
