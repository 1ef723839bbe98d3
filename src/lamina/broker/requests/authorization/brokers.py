"""Who is served as a broker where there are no access rules: whoever logged in as one that the settings name.

Owns the check that stands before what only brokers may ask. Must not know what they ask.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.request import Request
from lamina.errors import ClusterAuthorizationFailed


def for_brokers(handle: Handler, broker_principals: frozenset[str] | None) -> Handler:
    """``None`` where nobody shows who they are."""
    if broker_principals is None:
        return handle

    def guarded(request: Request, message: Any) -> Any:
        if request.principal not in broker_principals:
            raise ClusterAuthorizationFailed(
                f"{request.principal} is not known as a broker: super.users names those that do not log in as this one"
            )
        return handle(request, message)

    return guarded
