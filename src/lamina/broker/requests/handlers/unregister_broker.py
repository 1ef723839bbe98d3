"""UnregisterBroker (key 64), version 0.

Behaviour: the cluster goes on without a broker (R73). One that runs leads nothing any more, leaves the in-sync sets,
and stops; what it may have of deleted topics is forgotten. Its replicas stay assigned to it. BROKER_ID_NOT_REGISTERED
where no such broker runs and nothing is assigned to it.
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import UNREGISTER_BROKER as API_KEY
from lamina.wire.building import response_shape


async def handle(metadata: Metadata, request: Request, message: Any) -> Any:
    await metadata.unregister_broker(message.broker_id)
    return response_shape(API_KEY, request.api_version)(error_code=ErrorCode.NONE, error_message=None)


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, error_message=str(error))


API = Api(API_KEY, "UnregisterBroker", range(1), error_response, is_for_controller=True)
