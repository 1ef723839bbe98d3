"""What a cluster tells of groups: who is in them, and what they committed.

Must not know how any of it is shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError

if TYPE_CHECKING:
    from confluent_kafka.admin import ConsumerGroupDescription

STATES = {
    "PreparingRebalance": "PREPARING_REBALANCING",
    "CompletingRebalance": "COMPLETING_REBALANCING",
    "Stable": "STABLE",
    "Dead": "DEAD",
    "Empty": "EMPTY",
    "Unknown": "UNKNOWN",
}
"""Kafka's names to librdkafka's, which knows no Assigning or Reconciling: those are ``Unknown``."""

_KAFKAS = {name: ours for ours, name in STATES.items()}

Partition = tuple[str, int]


def state_of(group: Any) -> str:
    return _KAFKAS[group.state.name]


def protocol_of(group: Any) -> str:
    """``classic``, ``consumer``, or ``unknown`` where the broker is too old to tell."""
    return str(group.type.name).lower()


def all_groups(cluster: Cluster, attempts: Attempts, **filters: Any) -> list[Any]:
    """Listings in order of their names; of brokers that failed the attempts tell."""
    from lamina.client.errors import Refused

    found = cluster.answer(cluster.admin().list_consumer_groups(**filters))
    for error in found.errors or ():
        attempts.fail("groups", Refused(error.args[0]))
    return sorted(found.valid or (), key=lambda group: group.group_id)


def describe_all(cluster: Cluster, names: Iterable[str], attempts: Attempts) -> Iterator["ConsumerGroupDescription"]:
    """Those that are there, in the order of ``names``; of the others the attempts tell."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return
    futures = cluster.admin().describe_consumer_groups(wanted)
    for name, group in attempts.answers(futures.items()):
        if state_of(group) == "Dead":
            attempts.fail(name, no_such_group(name))
        else:
            yield group


def no_such_group(name: str) -> ClientError:
    return ClientError(f"there is no group '{name}'; `lamina groups list` shows all groups")


def committed(cluster: Cluster, group: str) -> Mapping[Partition, int]:
    """Everything that the group committed, in order."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    asked = cluster.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = cluster.answer(asked[group]).topic_partitions
    return dict(sorted(((one.topic, one.partition), one.offset) for one in found if one.offset >= 0))


def assigned(partitions: Iterable[Any]) -> dict[str, list[int]]:
    """Topics with the numbers of their partitions."""
    by_topic: dict[str, list[int]] = {}
    for one in sorted(partitions, key=lambda one: (one.topic, one.partition)):
        by_topic.setdefault(one.topic, []).append(one.partition)
    return by_topic
