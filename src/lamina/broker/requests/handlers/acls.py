"""DescribeAcls, CreateAcls and DeleteAcls (keys 29 to 31), versions 1-3.

Behaviour: SECURITY_DISABLED, always, for each rule that is to be made and each filter of those to be deleted: there is
no authorizer, and consoles take this for "no access rules here".
Version notes: the versions differ in their encoding only.
"""

from typing import Any

from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import KafkaError, SecurityDisabled
from lamina.wire.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from lamina.wire.building import response_shape

_VERSIONS = range(1, 4)


def handle(request: Request, message: Any) -> Any:
    raise SecurityDisabled("this broker has no authorizer: everybody may do everything")


def describe_error(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(DESCRIBE_ACLS, request.api_version)(
        error_code=error.code, error_message=str(error), resources=()
    )


def create_error(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(CREATE_ACLS, request.api_version)
    result = shape.of("results")(error_code=error.code, error_message=str(error))
    return shape(results=(result,) * len(message.creations))


def delete_error(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(DELETE_ACLS, request.api_version)
    result = shape.of("filter_results")(error_code=error.code, error_message=str(error), matching_acls=())
    return shape(filter_results=(result,) * len(message.filters))


DESCRIBE_API = Api(DESCRIBE_ACLS, "DescribeAcls", _VERSIONS, describe_error)
CREATE_API = Api(CREATE_ACLS, "CreateAcls", _VERSIONS, create_error)
DELETE_API = Api(DELETE_ACLS, "DeleteAcls", _VERSIONS, delete_error)
