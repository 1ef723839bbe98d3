"""Taking a broker out of the cluster, which librdkafka has no call for.

Must not know any command.
"""

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.errors import ErrorCode, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.target import Controller
from lamina.wire.api_keys import UNREGISTER_BROKER

_UNREGISTER_VERSIONS = range(1)


def unregister(cluster: Cluster, broker_id: int) -> bool:
    """Whether the cluster still knew it. One of Lamina that runs stops."""
    call = MessageCall(UNREGISTER_BROKER, _UNREGISTER_VERSIONS, broker_id=broker_id)
    told = cluster.ask(lambda peers: peers.request(Controller(), call))
    if told.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED:
        return False
    if told.error_code:
        reason = told.error_message or str(error_from_code(told.error_code, "the controller refused"))
        raise ClientError(f"broker {broker_id} cannot be unregistered: {reason.rstrip('.')}")
    return True
