"""Who can log in by SCRAM: librdkafka's Python binding ends the process where it may not be told.

Owns the request. Must not know any command.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, refusal
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.security.scram_credential import ScramMechanism
from lamina.wire.api_keys import DESCRIBE_USER_SCRAM_CREDENTIALS


class ScramUser(NamedTuple):
    name: str
    credentials: tuple[tuple[str, int], ...]
    """Each mechanism, and the iterations of its password."""


def described(cluster: Cluster, names: Sequence[str] = ()) -> Iterator[tuple[str, ScramUser | ClientError]]:
    """Of these users, or of all, in order; for one of whom nothing is told, why. Raises ClientError."""
    call = MessageCall(DESCRIBE_USER_SCRAM_CREDENTIALS, range(1), users=[{"name": name} for name in names] or None)
    answer = cluster.ask(lambda peers: peers.request(AnyBroker(), call))
    if answer.error_code:
        raise refusal(answer.error_code, answer.error_message)
    for result in sorted(answer.results, key=lambda one: str(one.user)):
        if result.error_code:
            yield result.user, refusal(result.error_code, result.error_message)
        else:
            infos = result.credential_infos
            credentials = ((_name_of(one.mechanism), one.iterations) for one in infos)
            yield result.user, ScramUser(result.user, tuple(credentials))


def _name_of(mechanism: int) -> str:
    try:
        return ScramMechanism(mechanism).sasl_name
    except ValueError:
        return f"mechanism {mechanism}"
