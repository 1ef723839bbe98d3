"""KeepLease (key 10002, Lamina's own), version 0: a reader says that it still reads what LendSegments lent, or no more.

Behaviour: the lease holds for its full time again, or ends with `is_over`. RESOURCE_NOT_FOUND for one that has ended:
the reader goes on with what it has open, and asks for the rest anew. A lease of another principal is told as none. A
reader that may not read the topic any more loses the lease.
"""

from typing import Any

from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import denial
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError
from lamina.security.acls import Operation, ResourceType
from lamina.wire.api_keys import KEEP_LEASE as API_KEY
from lamina.wire.building import response_shape


async def handle(leases: ReadLeases, authorizer: Authorizer | None, request: Request, message: Any) -> Any:
    if not message.is_over and authorizer is not None:
        topic = leases.topic_of(message.lease_id, request.principal)
        if not authorizer.allows(request, Operation.READ, ResourceType.TOPIC, topic):
            await leases.give_back(message.lease_id, request.principal)
            raise denial(Operation.READ, ResourceType.TOPIC)
    if message.is_over:
        await leases.give_back(message.lease_id, request.principal)
    else:
        leases.renew(message.lease_id, request.principal)
    return response_shape(API_KEY, request.api_version)(error_code=ErrorCode.NONE, error_message=None)


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, error_message=str(error))


API = Api(API_KEY, "KeepLease", range(1), error_response)
