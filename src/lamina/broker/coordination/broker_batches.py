"""Questions to other brokers, many in one request: those that wait for the same broker go together.

Owns what waits for which broker, with one request in flight to each of them. Must not know what is asked, nor how a
broker is reached.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from lamina.errors import NetworkError
from lamina.peer.call import MessageCall

Q = TypeVar("Q")
A = TypeVar("A")

_STOPS = "this broker stops"

AskBroker = Callable[[int, MessageCall], Awaitable[Any]]
"""Ask a broker by its id, through its listener for brokers; raises a KafkaError where no response comes."""


async def nobody_else(broker_id: int, call: MessageCall) -> Any:
    """How a broker that is alone asks others."""
    raise NetworkError(f"there is no broker {broker_id}: this one is alone")


class BrokerBatches(Generic[Q, A]):
    def __init__(
        self,
        ask_broker: AskBroker,
        call_for: Callable[[Sequence[Q]], MessageCall],
        read: Callable[[Sequence[Q], Any], Sequence[A]],
        loop: asyncio.AbstractEventLoop,
        max_questions: int = 100,
    ) -> None:
        """``call_for`` makes one request of questions; ``read`` takes their answers, in order, from its response."""
        self._ask_broker = ask_broker
        self._call_for = call_for
        self._read = read
        self._loop = loop
        self._max_questions = max_questions
        self._waiting: dict[int, list[tuple[Q, asyncio.Future[A]]]] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}

    def ask(self, broker_id: int, question: Q) -> "asyncio.Future[A]":
        """The answer, or a KafkaError where none came. A question whose future is done by then is not sent any more."""
        answer: asyncio.Future[A] = self._loop.create_future()
        self._waiting.setdefault(broker_id, []).append((question, answer))
        if broker_id not in self._asking:
            self._asking[broker_id] = self._loop.create_task(self._ask_all(broker_id))
        return answer

    async def _ask_all(self, broker_id: int) -> None:
        """One request after the other, until nothing waits for this broker any more."""
        try:
            while waiting := self._waiting.pop(broker_id, None):
                asked = [one for one in waiting if not one[1].done()]
                if asked[self._max_questions :]:
                    self._waiting[broker_id] = asked[self._max_questions :]
                    asked = asked[: self._max_questions]
                if asked:
                    await self._ask_together(broker_id, asked)
        finally:
            del self._asking[broker_id]

    async def _ask_together(self, broker_id: int, asked: list[tuple[Q, "asyncio.Future[A]"]]) -> None:
        questions = [question for question, _ in asked]
        try:
            response = await self._ask_broker(broker_id, self._call_for(questions))
            answered = list(zip(asked, self._read(questions, response), strict=True))
        except asyncio.CancelledError:
            _give_up(broker_id, asked, _STOPS)
            raise
        except Exception as error:
            _give_up(broker_id, asked, error)
            return
        for (_, future), answer in answered:
            if not future.done():
                future.set_result(answer)

    async def close(self) -> None:
        """Ask nothing any more. Who still waits is told so: a client waits for it, whose connection is to end."""
        tasks = list(self._asking.values())
        for broker_id, waiting in self._waiting.items():
            _give_up(broker_id, waiting, _STOPS)
        self._waiting.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _give_up(broker_id: int, asked: Iterable[tuple[object, "asyncio.Future[A]"]], reason: object) -> None:
    """An error for each who waits: an exception collects the frames in which it is raised."""
    for _, future in asked:
        if not future.done():
            future.set_exception(NetworkError(f"broker {broker_id} gave no answer: {reason}"))
