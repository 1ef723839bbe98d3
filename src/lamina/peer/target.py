"""Which broker a request is for, said by its role.

Owns the names of the roles. Must not know who has them.
"""

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Any broker."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The broker that changes metadata."""


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker with this id, and no other."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    topic: str
    partition: int


class CoordinatorType(IntEnum):
    """With the protocol's numbers."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group, or of a transactional id."""

    type: CoordinatorType
    key: str


Target = AnyBroker | Controller | Broker | Leader | Coordinator
