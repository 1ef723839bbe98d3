"""AddPartitionsToTxn (key 24), versions 0-5.

Behaviour: partitions become part of a producer's transaction before it writes to them. One that does not exist is
UNKNOWN_TOPIC_OR_PARTITION, and then none is added: the others are OPERATION_NOT_ATTEMPTED. Many partitions are looked
up and told in turns of the loop; those of one transaction are added in one turn.
Version notes: up to v3 from clients, one transaction; v4 and v5 from brokers, several, which may only be verified.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from lamina.broker.coordination.coordinator_lookup import leader_of
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import CLASSIC, AddPartitionsRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import ADD_PARTITIONS_TO_TXN as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_BATCHED = 4
_FIRST_WITH_FENCED = 2
_TRANSACTIONS_AT_A_TIME = 100

Outcome = dict[TopicPartition, ErrorCode]


async def handle(
    metadata: Metadata, transactions: TransactionCoordinator, clocks: Clocks, request: Request, message: Any
) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    turns = Turns(clocks)
    if request.api_version < _FIRST_BATCHED:
        outcome = await _add(metadata, transactions, turns, request, message)
        topic_shape = shape.of("results_by_topic_v3_and_below")
        topics = await _topics(topic_shape, message.v3_and_below_topics, outcome, turns)
        return shape(results_by_topic_v3_and_below=topics)
    outcomes: list[Outcome] = []
    for start in range(0, len(message.transactions), _TRANSACTIONS_AT_A_TIME):
        some = message.transactions[start : start + _TRANSACTIONS_AT_A_TIME]
        # Together: each may wait for the commit of what it adds.
        outcomes += await asyncio.gather(*(_verify(metadata, transactions, clocks, one) for one in some))
    result_shape = shape.of("results_by_transaction")
    topic_shape = result_shape.of("topic_results")
    results = []
    for one, outcome in zip(message.transactions, outcomes, strict=True):
        topics = await _topics(topic_shape, one.topics, outcome, turns)
        results.append(result_shape(transactional_id=one.transactional_id, topic_results=topics))
        await turns.step()
    return shape(error_code=ErrorCode.NONE, results_by_transaction=tuple(results))


async def _verify(metadata: Metadata, transactions: TransactionCoordinator, clocks: Clocks, one: Any) -> Outcome:
    """One transaction that another broker asks about."""
    keys = _keys(one.topics)
    outcome = await _unknown(metadata, keys, Turns(clocks))
    if outcome:
        return outcome
    responses = await transactions.verify(
        one.transactional_id, one.producer_id, one.producer_epoch, keys, not one.verify_only
    )
    return {key: _code(error) for key, error in responses.items()}


async def _add(
    metadata: Metadata, transactions: TransactionCoordinator, turns: Turns, request: Request, message: Any
) -> Outcome:
    keys = _keys(message.v3_and_below_topics)
    outcome = await _unknown(metadata, keys, turns)
    if outcome:
        return outcome
    add = AddPartitionsRequest(
        message.v3_and_below_transactional_id,
        Producer(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch),
        frozenset(keys),
        CLASSIC,
        request.api_version >= _FIRST_WITH_FENCED,
    )
    shard = transactions.shard_of(add.transactional_id)
    await shard.ask(lambda machine, waiter, now: machine.add_partitions(add, waiter, now))
    return dict.fromkeys(keys, ErrorCode.NONE)


def _keys(topics: Iterable[Any]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


async def _unknown(metadata: Metadata, keys: list[TopicPartition], turns: Turns) -> Outcome:
    """Nothing if all exist, on whichever broker; else what every one is told."""
    image = metadata.image
    unknown = set()
    for key in keys:
        if leader_of(image, *key) is None:
            unknown.add(key)
        await turns.step()
    if not unknown:
        return {}
    return {
        key: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if key in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
        for key in keys
    }


def _code(error: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


async def _topics(shape: Shape, topics: Iterable[Any], outcome: Outcome, turns: Turns) -> tuple[Any, ...]:
    partition_shape = shape.of("results_by_partition")
    results = []
    for topic in topics:
        partitions = []
        for index in topic.partitions:
            error_code = outcome[topic.name, index]
            partitions.append(partition_shape(partition_index=index, partition_error_code=error_code))
            await turns.step()
        results.append(shape(name=topic.name, results_by_partition=tuple(partitions)))
        await turns.step()
    return tuple(results)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version >= _FIRST_BATCHED:
        return shape(error_code=error.code, results_by_transaction=())
    topic_shape = shape.of("results_by_topic_v3_and_below")
    partition_shape = topic_shape.of("results_by_partition")
    topics = (
        topic_shape(
            name=topic.name,
            results_by_partition=tuple(
                partition_shape(partition_index=index, partition_error_code=error.code) for index in topic.partitions
            ),
        )
        for topic in message.v3_and_below_topics
    )
    return shape(results_by_topic_v3_and_below=tuple(topics))


API = Api(API_KEY, "AddPartitionsToTxn", range(6), error_response)
