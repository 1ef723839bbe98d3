"""Access rules as Kafka's ACLs have them: which resources, by which pattern; who, from where, doing what.

Owns the words and the protocol's numbers of them (S50). A rule stands for itself: what a set of rules allows is the
authorizer's decision. Must not know who asks, nor where rules are stored.
"""

from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    ANY = 1
    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """What a rule is about: the resources of a type whose name is, or begins with, the pattern's name.

    A literal ``*`` is every name.
    """

    type: ResourceType
    name: str
    pattern: PatternType


class AccessRule(NamedTuple):
    """Whom it is about, such as ``User:alice`` or ``User:*``, from which address (``*``: any), and what it says."""

    principal: str
    host: str
    operation: Operation
    permission: Permission
