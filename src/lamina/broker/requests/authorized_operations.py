"""What a client may do, as answers tell it: one bit for each operation (KIP-430).

Owns the operations that each type of resource knows. The bits here are those of somebody who may do all of them, as
everybody may where there is no authorizer. Must not know any message, nor who may do what.
"""

from lamina.security.acls import Operation, ResourceType

NOT_ASKED = -(2**31)
OPERATIONS_ON = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def _all_on(resource_type: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS_ON[resource_type])


ALL_ON_CLUSTER = _all_on(ResourceType.CLUSTER)
ALL_ON_TOPIC = _all_on(ResourceType.TOPIC)
ALL_ON_GROUP = _all_on(ResourceType.GROUP)
