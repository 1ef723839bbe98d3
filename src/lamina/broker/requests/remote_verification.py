"""Whether partitions are in a transaction that another broker coordinates: AddPartitionsToTxn 4 and 5 (R76).

Owns what one request says, how its response is read, and which question about a transactional id counts while several
wait for their turn. Must not know who coordinates what, nor what a producer is told.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lamina.broker.coordination.broker_batches import AskBroker, BrokerBatches
from lamina.errors import ErrorCode, InvalidProducerEpoch, KafkaError, NetworkError, error_from_code
from lamina.peer.call import MessageCall
from lamina.topic_partition import TopicPartition, by_topic
from lamina.wire.api_keys import ADD_PARTITIONS_TO_TXN

_VERSIONS = range(4, 6)

_WAIT_MS = 30_000
"""A coordinator may hold its response back for its request.timeout.ms, until what it adds is committed."""

Answers = Mapping[TopicPartition, KafkaError | None]


class Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    may_add: bool
    """Whether partitions that are not in the transaction are added to it."""


class RemoteVerification:
    def __init__(self, ask_broker: AskBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._batches: BrokerBatches[Question, Answers] = BrokerBatches(ask_broker, self._call, _answers, loop)
        self._waiting: dict[str, tuple[int, asyncio.Future[Answers]]] = {}
        """By transactional id: the epoch and the answer of the question that is not sent yet."""

    async def verify(self, coordinator_id: int, question: Question) -> Answers:
        try:
            answer = self._ask(coordinator_id, question)
            try:
                return await answer
            finally:
                self._forget(question.transactional_id, answer)
        except KafkaError as error:
            return dict.fromkeys(question.partitions, error)

    def _ask(self, coordinator_id: int, question: Question) -> "asyncio.Future[Answers]":
        """A question takes the place of an older one that still waits: its client has asked again, or is another."""
        epoch, transactional_id = question.producer_epoch, question.transactional_id
        known = self._waiting.get(transactional_id)
        if known is not None and not known[1].done():
            known_epoch, older = known
            if known_epoch > epoch:
                raise InvalidProducerEpoch(f"a producer of epoch {known_epoch} asks about {transactional_id!r} too")
            older.set_exception(
                NetworkError(f"{transactional_id!r} has asked again")
                if known_epoch == epoch
                else InvalidProducerEpoch(f"a producer of epoch {epoch} asks about {transactional_id!r} too")
            )
        answer = self._batches.ask(coordinator_id, question)
        self._waiting[transactional_id] = (epoch, answer)
        return answer

    def _forget(self, transactional_id: str, answer: "asyncio.Future[Answers]") -> None:
        """One that was given up before it was sent; another may have taken its place."""
        known = self._waiting.get(transactional_id)
        if known is not None and known[1] is answer:
            del self._waiting[transactional_id]

    def _call(self, questions: Sequence[Question]) -> MessageCall:
        """They are sent now: what is asked later takes the place of none of them."""
        for question in questions:
            self._waiting.pop(question.transactional_id, None)
        return MessageCall(
            ADD_PARTITIONS_TO_TXN, _VERSIONS, wait_ms=_WAIT_MS, transactions=[_told(one) for one in questions]
        )

    async def close(self) -> None:
        await self._batches.close()


def _told(question: Question) -> dict[str, Any]:
    return {
        "transactional_id": question.transactional_id,
        "producer_id": question.producer_id,
        "producer_epoch": question.producer_epoch,
        "verify_only": not question.may_add,
        "topics": [{"name": name, "partitions": indexes} for name, indexes in by_topic(question.partitions).items()],
    }


def _answers(questions: Sequence[Question], response: Any) -> list[Answers]:
    if response.error_code:
        raise error_from_code(response.error_code, "the coordinator cannot verify transactions")
    told = {
        str(result.transactional_id): {
            (str(topic.name), int(one.partition_index)): one.partition_error_code
            for topic in result.topic_results
            for one in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
    return [{key: _error(told[one.transactional_id][key]) for key in one.partitions} for one in questions]


def _error(code: int) -> KafkaError | None:
    return None if code == ErrorCode.NONE else error_from_code(code, "the transaction's coordinator refuses")
