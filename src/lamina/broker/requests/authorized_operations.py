"""What a client may do, as answers tell it: one bit for each operation (KIP-430).

Owns the bits of somebody who may do all that a resource knows, as everybody may where there is no authorizer. Must not
know any message, nor who may do what.
"""

from lamina.security.acls import OPERATIONS_ON, ResourceType

NOT_ASKED = -(2**31)


def _all_on(resource_type: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS_ON[resource_type])


ALL_ON_CLUSTER = _all_on(ResourceType.CLUSTER)
ALL_ON_TOPIC = _all_on(ResourceType.TOPIC)
ALL_ON_GROUP = _all_on(ResourceType.GROUP)
