"""What FindCoordinator checks: DESCRIBE of each group or transactional id that is looked for.

Must not know who coordinates what.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.guards import Guarding, Need, each, needing
from lamina.broker.requests.request import Request
from lamina.security.acls import Operation, ResourceType

_TRANSACTION = 1
_FIRST_BATCHED = 4
_TYPES = {0: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}


def find_coordinator(guarding: Guarding) -> Handler:
    one = {
        key_type: needing(Need(Operation.DESCRIBE, type_, lambda message: message.key))(guarding)
        for key_type, type_ in _TYPES.items()
    }
    several = {
        key_type: each(Operation.DESCRIBE, type_, "coordinator_keys", "coordinators", lambda key: key)(guarding)
        for key_type, type_ in _TYPES.items()
    }

    def guarded(request: Request, message: Any) -> Any:
        handlers = one if request.api_version < _FIRST_BATCHED else several
        # Of other types the handler says that there are none.
        return handlers.get(getattr(message, "key_type", 0), guarding.handle)(request, message)

    return guarded
