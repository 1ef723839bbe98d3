"""Questions to a coordinator on another broker, and those about one id that meet while they wait (R76)."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from lamina.broker.requests.remote_verification import Answers, Question, RemoteVerification
from lamina.errors import ErrorCode, KafkaError
from lamina.peer.call import MessageCall
from lamina.topic_partition import TopicPartition
from lamina.wire.building import response_shape

ADD_PARTITIONS = 24
SHAPE = response_shape(ADD_PARTITIONS, 5)


class Coordinator:
    """Answers with these codes, partition by partition; remembers what it was asked."""

    def __init__(self) -> None:
        self.codes: dict[TopicPartition, int] = {}
        self.error_code = 0
        self.asked: list[Any] = []
        self.gate = asyncio.Event()
        self.verification = RemoteVerification(self._ask, asyncio.get_running_loop())

    async def _ask(self, broker_id: int, call: MessageCall) -> Any:
        transactions = call._facts["transactions"]
        self.asked.append(transactions)
        await self.gate.wait()
        result = SHAPE.of("results_by_transaction")
        topic = result.of("topic_results")
        partition = topic.of("results_by_partition")
        results = tuple(
            result(
                transactional_id=one["transactional_id"],
                topic_results=tuple(
                    topic(
                        name=of["name"],
                        results_by_partition=tuple(
                            partition(
                                partition_index=index, partition_error_code=self.codes.get((of["name"], index), 0)
                            )
                            for index in of["partitions"]
                        ),
                    )
                    for of in one["topics"]
                ),
            )
            for one in transactions
        )
        return SHAPE(error_code=self.error_code, results_by_transaction=() if self.error_code else results)

    def ask(self, transactional_id: str, epoch: int = 0, *, may_add: bool = False) -> "asyncio.Task[Answers]":
        question = Question(transactional_id, 7, epoch, (("t", 0), ("t", 1)), may_add)
        return asyncio.get_running_loop().create_task(self.verification.verify(2, question))


def codes(answers: Mapping[TopicPartition, KafkaError | None]) -> list[int]:
    return [0 if error is None else int(error.code) for error in answers.values()]


async def turn() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


def test_many_transactions_are_asked_for_together() -> None:
    async def scene() -> None:
        coordinator = Coordinator()
        coordinator.codes = {("t", 1): ErrorCode.TRANSACTION_ABORTABLE}
        coordinator.gate.set()
        answers = [coordinator.ask("a"), coordinator.ask("b", may_add=True)]
        assert [codes(await one) for one in answers] == [[0, 120], [0, 120]]
        ((first, second),) = coordinator.asked
        assert (first["transactional_id"], first["verify_only"], second["verify_only"]) == ("a", True, False)
        assert first["topics"] == [{"name": "t", "partitions": [0, 1]}]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("older", "newer", "told"),
    [
        (1, 1, ([13, 13], [0, 0])),
        (1, 2, ([47, 47], [0, 0])),
        (2, 1, ([0, 0], [47, 47])),
    ],
)
def test_of_two_questions_about_one_id_one_counts_while_they_wait(
    older: int, newer: int, told: tuple[list[int], list[int]]
) -> None:
    async def scene() -> None:
        coordinator = Coordinator()
        before = coordinator.ask("another")
        await turn()
        answers = [coordinator.ask("a", older), coordinator.ask("a", newer)]
        await turn()
        coordinator.gate.set()
        assert (codes(await answers[0]), codes(await answers[1])) == told
        await before
        assert [len(one) for one in coordinator.asked] == [1, 1]
        assert not coordinator.verification._waiting

    asyncio.run(scene())


def test_r76_a_question_that_nobody_waits_for_any_more_is_forgotten() -> None:
    """Its client has gone while it waited for its turn: transactional ids are clients' to invent."""

    async def scene() -> None:
        coordinator = Coordinator()
        before, cancelled = coordinator.ask("another"), coordinator.ask("a", 2)
        await turn()
        waiting = coordinator.ask("b", 2)
        await turn()
        waiting.cancel()
        await turn()
        assert not coordinator.verification._waiting
        coordinator.gate.set()
        await asyncio.gather(before, cancelled)
        assert [len(one) for one in coordinator.asked] == [2], "nor is it sent"

    asyncio.run(scene())


def test_a_question_that_was_sent_is_not_displaced() -> None:
    async def scene() -> None:
        coordinator = Coordinator()
        sent = coordinator.ask("a", 1)
        await turn()
        later = coordinator.ask("a", 2)
        coordinator.gate.set()
        assert (codes(await sent), codes(await later)) == ([0, 0], [0, 0])
        assert len(coordinator.asked) == 2

    asyncio.run(scene())


def test_an_error_of_the_whole_response_is_every_partitions() -> None:
    async def scene() -> None:
        coordinator = Coordinator()
        coordinator.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        coordinator.gate.set()
        assert codes(await coordinator.ask("a")) == [13, 13], "no answer"

    asyncio.run(scene())
