"""AddOffsetsToTxn (key 25), versions 0-4.

Behaviour: the partition of `__consumer_offsets` in which a group lives becomes part of a producer's transaction.
Version notes: PRODUCER_FENCED from v2. Clients of transaction version 2 do not ask.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import AddOffsetsRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import ADD_OFFSETS_TO_TXN as API_KEY
from lamina.wire.building import response_shape

_FIRST_WITH_FENCED = 2


def handle(groups: GroupCoordinator, transactions: TransactionCoordinator, request: Request, message: Any) -> Any:
    add = AddOffsetsRequest(
        message.transactional_id,
        Producer(message.producer_id, message.producer_epoch),
        message.group_id,
        groups.partition_count(),
        request.api_version >= _FIRST_WITH_FENCED,
    )
    shard = transactions.shard_of(message.transactional_id)
    pending = shard.ask(lambda machine, waiter, now: machine.add_offsets(add, waiter, now))
    return pending.then(lambda _: response_shape(API_KEY, request.api_version)(error_code=ErrorCode.NONE))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code)


API = Api(API_KEY, "AddOffsetsToTxn", range(5), error_response)
