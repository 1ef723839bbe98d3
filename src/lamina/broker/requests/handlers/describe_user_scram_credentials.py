"""DescribeUserScramCredentials (key 50), version 0.

Behaviour: which users have passwords for which of SCRAM's mechanisms, with how many iterations; nothing that a password
could be guessed by (S44). No names, or an empty list of them, are all users. Per user RESOURCE_NOT_FOUND, and
DUPLICATE_RESOURCE for one that is named twice.
"""

from collections import Counter
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import DuplicateResource, ErrorCode, KafkaError, ResourceNotFound
from lamina.wire.api_keys import DESCRIBE_USER_SCRAM_CREDENTIALS as API_KEY
from lamina.wire.building import Shape, response_shape


def handle(metadata: Metadata, request: Request, message: Any) -> Any:
    users = metadata.image.scram_credentials
    named = Counter([one.name for one in message.users or ()] or sorted(users))
    shape = response_shape(API_KEY, request.api_version)
    result = shape.of("results")
    info = result.of("credential_infos")
    results = []
    for user, times in named.items():
        if times > 1:
            results.append(_failed(result, user, DuplicateResource(f"user {user!r} is named more than once")))
        elif user not in users:
            results.append(_failed(result, user, ResourceNotFound(f"user {user!r} has no SCRAM passwords")))
        else:
            infos = tuple(
                info(mechanism=mechanism, iterations=credential.iterations)
                for mechanism, credential in sorted(users[user].items())
            )
            results.append(result(user=user, error_code=ErrorCode.NONE, error_message=None, credential_infos=infos))
    return shape(error_code=ErrorCode.NONE, error_message=None, results=tuple(results))


def _failed(result: Shape, user: str, error: KafkaError) -> Any:
    return result(user=user, error_code=error.code, error_message=str(error), credential_infos=())


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(error_code=error.code, error_message=str(error), results=())


API = Api(API_KEY, "DescribeUserScramCredentials", range(1), error_response)
