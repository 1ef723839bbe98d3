"""What the listeners of a cluster's member offer: one serves the other brokers, all others serve clients.

Owns the handlers that brokers alone ask for. Loaded by members of a cluster only. Must not know what handlers do.
"""

from functools import partial

from lamina.broker.metadata.member import Member
from lamina.broker.requests.api import Api, Handler
from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.authorization.apis import guarded
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.brokers import for_brokers
from lamina.broker.requests.handlers import alter_partition, follow_metadata
from lamina.broker.requests.handlers import envelope as envelope_api
from lamina.broker.requests.handlers.envelope import Envelope
from lamina.broker.threads import Threads
from lamina.clocks import Clocks

APIS_FOR_CLIENTS = tuple(api for api in APIS if not api.is_for_brokers)

APIS_BETWEEN_BROKERS: tuple[Api, ...] = tuple(
    sorted((*APIS, alter_partition.API, follow_metadata.API, envelope_api.API), key=lambda api: api.key)
)


def apis_on(broker_listener: str, listener_name: str) -> tuple[Api, ...]:
    return APIS_BETWEEN_BROKERS if listener_name == broker_listener else APIS_FOR_CLIENTS


def cluster_table(
    member: Member,
    envelope: Envelope,
    message_thread: Threads,
    clocks: Clocks,
    authorizer: Authorizer | None,
    broker_principals: frozenset[str] | None,
) -> list[tuple[Api, Handler]]:
    """What the brokers of a cluster ask each other beside what clients ask them."""
    handlers: tuple[tuple[Api, Handler], ...] = (
        (alter_partition.API, partial(alter_partition.handle, member)),
        (follow_metadata.API, partial(follow_metadata.handle, member, message_thread, clocks)),
        (envelope_api.API, envelope.handle),
    )
    return [
        (api, for_brokers(guarded(api, handle, authorizer, message_thread), broker_principals))
        for api, handle in handlers
    ]
