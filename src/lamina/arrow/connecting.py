"""From client properties to a client of the cluster that they describe.

Owns which connector is used, and the randomness of back-offs. Must not know what is asked of the cluster.
"""

import random

from lamina.arrow.properties import ClientProperties
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector


def open_cluster(properties: ClientProperties) -> ClusterClient:
    """To be used as ``async with open_cluster(…) as cluster``, on one event loop."""
    return ClusterClient(
        properties.bootstrap, PlainConnector(properties.client_id), random.Random().random, properties.limits
    )
