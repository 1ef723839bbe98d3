"""Throttles of replication while replicas move: set before, removed afterwards, with the names that Kafka's tool uses.

The rates are settings of brokers, the replicas that they hold back are settings of topics (R77). A broker that is away
cannot be told anything, and has nothing to copy. Must not know any command.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lamina.client.cluster import Cluster
from lamina.client.errors import Refused
from lamina.planning.throttled_replicas import ThrottledReplicas

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
_GONE = "UNKNOWN_TOPIC_OR_PART"
_TOPIC, _BROKER = "topic", "broker"
_TOPICS_AT_A_TIME = 500


def set_throttles(
    cluster: Cluster, broker_ids: Iterable[int], topics: Mapping[str, ThrottledReplicas], bytes_per_second: int
) -> None:
    """The replicas come first: a rate without them holds nothing back."""
    for topic, replicas in topics.items():
        _alter(cluster, _TOPIC, topic, {LEADERS: replicas.leaders, FOLLOWERS: replicas.followers})
    for broker_id in sorted(broker_ids):
        rate = str(bytes_per_second)
        _alter(cluster, _BROKER, str(broker_id), {LEADER_RATE: rate, FOLLOWER_RATE: rate})


class Throttles(NamedTuple):
    """The names of the settings that are set, by broker and by topic."""

    rates: dict[str, list[str]]
    replicas: dict[str, list[str]]

    def __bool__(self) -> bool:
        return bool(self.rates or self.replicas)


def find_throttles(cluster: Cluster, broker_ids: Iterable[int], topics: Collection[str]) -> Throttles:
    """Of these brokers and topics."""
    from confluent_kafka.admin import ConfigSource

    brokers = [_resource(_BROKER, str(one)) for one in sorted(broker_ids)]
    rates: dict[str, list[str]] = {}
    for one in brokers:
        # librdkafka takes one broker at a time.
        rates |= _set_on(cluster, [one], (LEADER_RATE, FOLLOWER_RATE), ConfigSource.DYNAMIC_BROKER_CONFIG)
    named = [_resource(_TOPIC, topic) for topic in sorted(topics)]
    replicas: dict[str, list[str]] = {}
    for start in range(0, len(named), _TOPICS_AT_A_TIME):
        some = named[start : start + _TOPICS_AT_A_TIME]
        replicas |= _set_on(cluster, some, (LEADERS, FOLLOWERS), ConfigSource.DYNAMIC_TOPIC_CONFIG)
    return Throttles(rates, replicas)


def remove_throttles(cluster: Cluster, found: Throttles) -> None:
    for kind, by_name in ((_BROKER, found.rates), (_TOPIC, found.replicas)):
        for name, settings in by_name.items():
            _alter(cluster, kind, name, dict.fromkeys(settings))


def _set_on(
    cluster: Cluster, resources: "Sequence[ConfigResource]", settings: Collection[str], own: "ConfigSource"
) -> dict[str, list[str]]:
    """Which of these settings are set on each resource itself, without resources that have none or are gone."""
    from confluent_kafka.admin import ConfigSource

    found: dict[str, list[str]] = {}
    for resource, future in cluster.admin().describe_configs(list(resources)).items():
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
