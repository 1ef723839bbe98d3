"""How many partitions and replicas a topic may have, and which brokers may keep them.

Owns Kafka's rules for counts and for assignments that a client makes by hand, with Kafka's error for each. A
count of -1, which asks for the default, has been resolved. Must not choose brokers: that is placement's.
"""

from collections.abc import Iterable, Mapping, Sequence

from lamina.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    PolicyViolation,
    ReassignmentInProgress,
)
from lamina.image.image import Image
from lamina.image.topic import Partition, Topic

MAX_PARTITIONS_PER_REQUEST = 10_000
MAX_REPLICATION_FACTOR = 2**15 - 1
MAX_DIRECTORY_NAME = 255


def check_total_partitions(counts: Iterable[int]) -> None:
    """All topics of one request together; numbers that are wrong by themselves are another rule's."""
    total = sum(count for count in counts if count > 0)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation(
            f"one request may make {MAX_PARTITIONS_PER_REQUEST} partitions, this one asks for {total}"
        )


def check_partition_count(count: int) -> None:
    if count < 1:
        raise InvalidPartitions(f"a topic must have at least one partition, not {count}")


def check_replication_factor(broker_count: int, factor: int) -> None:
    if not 1 <= factor <= MAX_REPLICATION_FACTOR:
        raise InvalidReplicationFactor(f"the replication factor must be between 1 and 32767, not {factor}")
    if factor > broker_count:
        registered = "1 is" if broker_count == 1 else f"{broker_count} are"
        raise InvalidReplicationFactor(
            f"a replication factor of {factor} needs as many brokers; {registered} registered"
        )


def check_assignments(image: Image, assignments: Mapping[int, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """A new topic's replicas by partition, made by hand; returns them in order."""
    if not assignments:
        raise InvalidReplicaAssignment("the assignment names no partition")
    for expected, index in enumerate(sorted(assignments)):
        if index != expected:
            raise InvalidReplicaAssignment(
                f"the assignment must name partitions 0 to {len(assignments) - 1}; {expected} is missing"
            )
    factor = len(assignments[0])
    return tuple(_check_replicas(image, index, assignments[index], factor) for index in range(len(assignments)))


def check_more_partitions(
    image: Image, topic: Topic, total_count: int, assignments: Sequence[Sequence[int]] | None
) -> tuple[tuple[int, ...], ...] | None:
    """A larger count for a topic, with replicas for each new partition if they are assigned by hand.

    Not while the topic is reassigned: nobody can tell how many replicas a partition of it has (R63).
    """
    current = len(topic.partitions)
    if any(partition.is_reassigning for partition in topic.partitions):
        raise ReassignmentInProgress(f"topic {topic.name!r} is being reassigned: it can grow when that is done")
    if total_count <= current:
        raise InvalidPartitions(f"topic {topic.name!r} has {current} partitions; {total_count} is not an increase")
    check_total_partitions([total_count - current])
    if len(f"{topic.name}-{total_count - 1}") > MAX_DIRECTORY_NAME:
        raise InvalidPartitions(f"{total_count} partitions of a topic with so long a name could not have directories")
    if assignments is None:
        return None
    if len(assignments) != total_count - current:
        raise InvalidReplicaAssignment(
            f"{total_count - current} partitions are to be added, but {len(assignments)} are assigned"
        )
    factor = len(topic.partitions[0].replicas)
    return tuple(
        _check_replicas(image, current + position, replicas, factor) for position, replicas in enumerate(assignments)
    )


def check_reassignment(
    image: Image, partition: Partition, replicas: Sequence[int], *, may_change_factor: bool
) -> tuple[int, ...]:
    """Other replicas for a partition (R69). Those that it has may be away, and those that are added may not."""
    if not replicas:
        raise InvalidReplicaAssignment("the partition is assigned to no broker")
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignment(f"the partition is assigned twice to the same broker: {list(replicas)}")
    if min(replicas) < 0:
        raise InvalidReplicaAssignment(f"no broker has the id {min(replicas)}")
    origin = partition.origin
    for broker_id in replicas:
        broker = image.brokers.get(broker_id)
        if broker_id not in origin and (broker is None or broker.is_draining):
            raise InvalidReplicaAssignment(f"broker {broker_id} is not there to take a replica")
    if len(replicas) != len(origin) and not may_change_factor:
        raise InvalidReplicationFactor(
            f"the partition has {len(origin)} replicas and would get {len(replicas)}, which the request rules out"
        )
    return tuple(replicas)


def _check_replicas(image: Image, index: int, replicas: Sequence[int], factor: int) -> tuple[int, ...]:
    if not replicas:
        raise InvalidReplicaAssignment(f"partition {index} is assigned to no broker")
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignment(f"partition {index} is assigned twice to the same broker: {list(replicas)}")
    unknown = [broker_id for broker_id in replicas if broker_id not in image.brokers]
    if unknown:
        raise InvalidReplicaAssignment(f"partition {index} is assigned to broker {unknown[0]}, which is not registered")
    if len(replicas) != factor:
        raise InvalidReplicaAssignment(f"partition {index} has {len(replicas)} replicas where others have {factor}")
    return tuple(replicas)
