"""From client properties to a client of the cluster that they describe.

Owns which connector is used, and the randomness of back-offs. Must not know what is asked of the cluster.
"""

import random
from secrets import token_urlsafe

from lamina.arrow.errors import ReadError
from lamina.arrow.properties import ClientProperties
from lamina.peer.cluster import ClusterClient
from lamina.peer.security import connectors
from lamina.peer.security_properties import SecurityPropertyError


def open_cluster(properties: ClientProperties) -> ClusterClient:
    """To be used as ``async with open_cluster(…) as cluster``, on one event loop. Raises `ReadError`."""
    try:
        connector = connectors(properties.security, token_urlsafe)(properties.client_id)
    except SecurityPropertyError as error:
        raise ReadError(str(error)) from None
    return ClusterClient(properties.bootstrap, connector, random.Random().random, properties.limits)
