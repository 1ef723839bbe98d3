"""Throttles of replication while replicas move: set before, removed afterwards, with the names that Kafka's tool uses.

The rates are settings of brokers, the replicas that they hold back are settings of topics (R77). A broker that is away
cannot be told anything, and has nothing to copy. Must not know any command.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lamina.client.cluster import Cluster
from lamina.client.errors import Refused
from lamina.planning.throttled_replicas import ThrottledReplicas

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
_GONE = "UNKNOWN_TOPIC_OR_PART"
_TOPIC, _BROKER = "topic", "broker"


def set_throttles(
    cluster: Cluster, broker_ids: Iterable[int], topics: Mapping[str, ThrottledReplicas], bytes_per_second: int
) -> None:
    """The replicas come first: a rate without them holds nothing back."""
    for topic, replicas in topics.items():
        _alter(cluster, _TOPIC, topic, {LEADERS: replicas.leaders, FOLLOWERS: replicas.followers})
    for broker_id in sorted(broker_ids):
        rate = str(bytes_per_second)
        _alter(cluster, _BROKER, str(broker_id), {LEADER_RATE: rate, FOLLOWER_RATE: rate})


def remove_throttles(cluster: Cluster, broker_ids: Iterable[int], topics: Collection[str]) -> bool:
    """From these brokers and topics. Whether there were any."""
    from confluent_kafka.admin import ConfigSource

    brokers = [_resource(_BROKER, str(one)) for one in sorted(broker_ids)]
    rates = _set_on(cluster, brokers, (LEADER_RATE, FOLLOWER_RATE), ConfigSource.DYNAMIC_BROKER_CONFIG)
    replicas = _set_on(
        cluster,
        [_resource(_TOPIC, topic) for topic in sorted(topics)],
        (LEADERS, FOLLOWERS),
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    for kind, found in ((_BROKER, rates), (_TOPIC, replicas)):
        for name, settings in found.items():
            _alter(cluster, kind, name, dict.fromkeys(settings))
    return bool(rates or replicas)


def _set_on(
    cluster: Cluster, resources: "Sequence[ConfigResource]", settings: Collection[str], own: "ConfigSource"
) -> dict[str, list[str]]:
    """Which of these settings are set on each resource itself; without those that have none, and topics that are gone.

    Each is asked on its own: librdkafka takes one broker at a time.
    """
    from confluent_kafka.admin import ConfigSource

    found: dict[str, list[str]] = {}
    for resource, future in [(one, cluster.admin().describe_configs([one])[one]) for one in resources]:
        try:
            entries = cluster.answer(future)
        except Refused as error:
            if error.name != _GONE:
                raise
            continue
        # librdkafka gives a source as a plain number.
        is_set = [one for one in settings if one in entries and ConfigSource(entries[one].source) is own]
        if is_set:
            found[resource.name] = is_set
    return found


def _alter(cluster: Cluster, kind: str, name: str, wanted: Mapping[str, str | None]) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    changes = [
        ConfigEntry(setting, value, incremental_operation=delete if value is None else set_)
        for setting, value in wanted.items()
    ]
    (future,) = cluster.admin().incremental_alter_configs([_resource(kind, name, changes)]).values()
    cluster.answer(future)


def _resource(kind: str, name: str, changes: "list[ConfigEntry] | None" = None) -> "ConfigResource":
    from confluent_kafka.admin import ConfigResource

    return ConfigResource(kind, name, incremental_configs=changes)
