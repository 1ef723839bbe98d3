"""DescribeAcls (key 29), versions 1-3.

Behaviour: SECURITY_DISABLED, always: there is no authorizer, and consoles take this for "no access rules here".
Version notes: the versions differ in their encoding only.
"""

from typing import Any

from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import KafkaError, SecurityDisabled
from lamina.wire.building import response_shape

API_KEY = 29


def handle(request: Request, message: Any) -> Any:
    raise SecurityDisabled("this broker has no authorizer: everybody may do everything")


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, error_message=str(error), resources=())


API = Api(API_KEY, "DescribeAcls", range(1, 4), error_response)
