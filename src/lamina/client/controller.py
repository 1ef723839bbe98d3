"""Which broker is the controller, as one tells whose session with ZooKeeper is proven.

librdkafka asks for Metadata, which goes on to name the last one. Must not know any command.
"""

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.wire.api_keys import DESCRIBE_CLUSTER

_DESCRIBE_CLUSTER_VERSIONS = range(2)


def controller_id(cluster: Cluster, last_known: int) -> int:
    """-1 for none; ``last_known`` where a broker is too old to tell."""
    call = MessageCall(DESCRIBE_CLUSTER, _DESCRIBE_CLUSTER_VERSIONS, include_cluster_authorized_operations=False)
    try:
        told = cluster.ask(lambda peers: peers.request(AnyBroker(), call))
    except ClientError:
        return last_known
    return last_known if told.error_code else int(told.controller_id)
