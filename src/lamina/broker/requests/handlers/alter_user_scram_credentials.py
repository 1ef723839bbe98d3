"""AlterUserScramCredentials (key 51), version 0.

Behaviour: passwords of SCRAM's users, salted by whoever asks (S43). All users that are fine are changed in one change;
it holds for logins when the answer goes out. Per user UNACCEPTABLE_CREDENTIAL for an empty name or a number of
iterations out of range, UNSUPPORTED_SASL_MECHANISM, DUPLICATE_RESOURCE for one that is named twice, RESOURCE_NOT_FOUND
for a deletion of what is not there. Whoever has logged in stays logged in (S91).
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import set_scram_credentials
from lamina.image.features import check_keeps_security
from lamina.image.image import Image
from lamina.security.scram_users import AlteredUsers, Deletion, Upsertion, alter_users
from lamina.wire.api_keys import ALTER_USER_SCRAM_CREDENTIALS as API_KEY
from lamina.wire.building import response_shape

_CHANGES_AT_A_TIME = 100
"""Each takes about ten microseconds."""


async def handle(metadata: Metadata, message_thread: Threads, request: Request, message: Any) -> Any:
    deletions = [Deletion(one.name, one.mechanism) for one in message.deletions]
    upsertions = [
        Upsertion(one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password))
        for one in message.upsertions
    ]
    altered = AlteredUsers({}, {})

    async def change(image: Image) -> Image:
        nonlocal altered
        check_keeps_security(image)
        users = image.scram_credentials
        if len(deletions) + len(upsertions) > _CHANGES_AT_A_TIME:
            altered = await message_thread.compute(lambda: alter_users(users, deletions, upsertions))
        else:
            altered = alter_users(users, deletions, upsertions)
        return set_scram_credentials(image, altered.changed)

    await metadata.change(change)
    return _response(request, altered.errors.items())


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    users = dict.fromkeys(one.name for one in (*message.deletions, *message.upsertions))
    return _response(request, [(user, error) for user in users])


def _response(request: Request, results: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    result = shape.of("results")
    return shape(
        results=tuple(
            result(
                user=user,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else str(error),
            )
            for user, error in results
        )
    )


API = Api(API_KEY, "AlterUserScramCredentials", range(1), error_response, is_for_controller=True)
