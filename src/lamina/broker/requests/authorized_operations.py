"""What a client may do, as answers tell it: one bit for each operation (KIP-430).

Owns the operations that a cluster, a topic and a group know. There is no authorizer, so everybody may do all of them.
Must not know any message.
"""

from enum import IntEnum


class Operation(IntEnum):
    """With the protocol's numbers."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED = -(2**31)
ALL_ON_CLUSTER = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
ALL_ON_TOPIC = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ALL_ON_GROUP = _bits(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
