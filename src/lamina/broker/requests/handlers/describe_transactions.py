"""DescribeTransactions (key 65), version 0.

Behaviour: state, producer, timeout, start and partitions of transactional ids; TRANSACTIONAL_ID_NOT_FOUND otherwise.
"""

from itertools import groupby
from typing import Any

from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.transaction_requests import TransactionDescription
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import DESCRIBE_TRANSACTIONS as API_KEY
from lamina.wire.building import Shape, response_shape

_NOTHING = -1


async def handle(transactions: TransactionCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    state_shape = shape.of("transaction_states")
    states = []
    async for transactional_id in in_turns(message.transactional_ids, clocks):
        try:
            states.append(_state(state_shape, await transactions.describe(transactional_id)))
        except KafkaError as error:
            states.append(_failed(state_shape, transactional_id, error))
    return shape(transaction_states=tuple(states))


def _state(shape: Shape, described: TransactionDescription) -> Any:
    topic_shape = shape.of("topics")
    return shape(
        error_code=ErrorCode.NONE,
        transactional_id=described.transactional_id,
        transaction_state=described.state,
        transaction_timeout=described.timeout_ms,
        transaction_start_time=described.start_timestamp_ms,
        producer_id=described.producer.id,
        producer_epoch=described.producer.epoch,
        topics=tuple(
            topic_shape(topic=topic, partitions=tuple(index for _, index in of_topic))
            for topic, of_topic in groupby(sorted(described.partitions), key=lambda key: key[0])
        ),
    )


def _failed(shape: Shape, transactional_id: str, error: KafkaError) -> Any:
    return shape(
        error_code=error.code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout=0,
        transaction_start_time=_NOTHING,
        producer_id=_NOTHING,
        producer_epoch=_NOTHING,
        topics=(),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    states = tuple(_failed(shape.of("transaction_states"), one, error) for one in message.transactional_ids)
    return shape(transaction_states=states)


API = Api(API_KEY, "DescribeTransactions", range(1), error_response)
