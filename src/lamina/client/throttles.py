"""Throttles of replication while replicas move: set before, removed afterwards, with the names that Kafka's tool uses.

The rates are settings of brokers, the replicas that they hold back are settings of topics (R77). A broker that is away
cannot be told anything, and has nothing to copy. Must not know any command.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from lamina.client.cluster import Cluster
from lamina.client.errors import Refused
from lamina.planning.throttled_replicas import ThrottledReplicas

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import ConfigEntry, ConfigResource

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
T = TypeVar("T")

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
    """Of these brokers and topics. Whether there were any."""
    from confluent_kafka.admin import ConfigSource

    were_any = False
    own_topic, own_broker = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG
    places = [(_BROKER, str(one), (LEADER_RATE, FOLLOWER_RATE), own_broker) for one in sorted(broker_ids)]
    places += [(_TOPIC, topic, (LEADERS, FOLLOWERS), own_topic) for topic in sorted(topics)]
    for kind, name, settings, own in places:
        try:
            known = _described(cluster, kind, name)
            # librdkafka gives a source as a plain number.
            is_set = [one for one in settings if one in known and ConfigSource(known[one].source) is own]
            if is_set:
                _alter(cluster, kind, name, dict.fromkeys(is_set))
                were_any = True
        except Refused as error:
            if error.name != _GONE:
                raise
    return were_any


def _described(cluster: Cluster, kind: str, name: str) -> "Mapping[str, ConfigEntry]":
    return _only(cluster, cluster.admin().describe_configs([_resource(kind, name)]))


def _alter(cluster: Cluster, kind: str, name: str, wanted: Mapping[str, str | None]) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    changes = [
        ConfigEntry(setting, value, incremental_operation=delete if value is None else set_)
        for setting, value in wanted.items()
    ]
    _only(cluster, cluster.admin().incremental_alter_configs([_resource(kind, name, changes)]))


def _resource(kind: str, name: str, changes: "list[ConfigEntry] | None" = None) -> "ConfigResource":
    from confluent_kafka.admin import ConfigResource

    return ConfigResource(kind, name, incremental_configs=changes)


def _only(cluster: Cluster, asked: "Mapping[ConfigResource, Future[T]]") -> "T":
    (future,) = asked.values()
    return cluster.answer(future)
