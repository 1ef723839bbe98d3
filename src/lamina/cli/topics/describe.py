"""``lamina topics describe``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Value, print_json, print_table
from lamina.cli.printing.text import cell
from lamina.cli.topics.lookup import (
    EARLIEST,
    LATEST,
    Partition,
    all_names,
    describe_all,
    id_text,
    replication_factor,
)
from lamina.cli.topics.partition_offsets import PartitionOffsets
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable
from lamina.client.replicas import Replicas, find_replicas

if TYPE_CHECKING:
    from confluent_kafka.admin import ListOffsetsResultInfo, TopicDescription

_COMPACTION = "lamina.compaction"
_OF_SEVERAL = {"offline": "offline_replicas", "lag": "replica_lag"}
"""Columns that a table has only where there is something to show; by heading."""


@click.command(
    "describe",
    epilog="""\b
Examples:
  lamina topics describe
  lamina topics describe orders payments --json""",
)
@topics_argument(required=False)
@as_json_option
@cluster_options
def describe(cluster: Cluster, topics: tuple[str, ...], as_json: bool) -> int:
    """Show the partitions and settings of topics.

    All topics except internal ones if none is named. The lag of a replica is how many offsets it is behind the leader.
    """
    attempts = Attempts(cluster)
    found = describe_all(cluster, topics or all_names(cluster), attempts)
    shown = [topic for topic in found if topics or not topic.is_internal]
    lookup = PartitionOffsets(cluster, attempts)
    earliest, latest = lookup.find(shown, EARLIEST), lookup.find(shown, LATEST)
    names = [topic.name for topic in shown]
    replicas = find_replicas(cluster, names, lookup.silent_brokers) if shown else Replicas()
    for number, topic in enumerate(shown):
        configs = {} if cluster.is_controller_silent() else _configs(cluster, topic.name, attempts)
        partitions = _partitions(topic, replicas, earliest, latest)
        if as_json:
            print_json(
                {
                    "type": "topic",
                    "name": topic.name,
                    "id": id_text(topic),
                    "internal": topic.is_internal,
                    "partition_count": len(partitions),
                    "replication_factor": replication_factor(topic),
                    "configs": configs,
                    "partitions": [*partitions],
                }
            )
        else:
            if number:
                click.echo()
            _print(topic, configs, partitions)
    lookup.report()
    if shown and cluster.is_controller_silent():
        sentence = "the controller does not answer: ids and settings of topics are not shown; try again in a moment"
        warn(sentence)
    if not shown and not topics:
        warn("there are no topics; create one with `lamina topics create NAME`")
    return attempts.status


def _configs(cluster: Cluster, topic: str, attempts: Attempts) -> dict[str, Value]:
    """What is set on the topic itself, and why it is not compacted if it should be and is not."""
    from confluent_kafka.admin import ConfigResource, ConfigSource

    futures = cluster.admin().describe_configs([ConfigResource("topic", topic)])
    try:
        entries = cluster.answer(next(iter(futures.values())))
    except Unreachable:
        raise
    except ClientError as error:
        attempts.fail(topic, error)
        return {}
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in sorted(entries.items()) if entry.source == own or name == _COMPACTION}


def _partitions(
    topic: "TopicDescription",
    replicas: Replicas,
    earliest: "Mapping[Partition, ListOffsetsResultInfo]",
    latest: "Mapping[Partition, ListOffsetsResultInfo]",
) -> list[dict[str, Value]]:
    return [
        {
            "partition": partition.id,
            "leader": None if partition.leader is None or partition.leader.id < 0 else partition.leader.id,
            "replicas": [node.id for node in partition.replicas],
            "isr": [node.id for node in partition.isr],
            "offline_replicas": [*replicas.offline.get((topic.name, partition.id), ())],
            "replica_lag": {str(id_): lag for id_, lag in replicas.lags.get((topic.name, partition.id), {}).items()},
            "earliest": _offset(earliest, (topic.name, partition.id)),
            "latest": _offset(latest, (topic.name, partition.id)),
        }
        for partition in topic.partitions
    ]


def _offset(found: "Mapping[Partition, ListOffsetsResultInfo]", key: Partition) -> int | None:
    return found[key].offset if key in found else None


def _print(topic: "TopicDescription", configs: dict[str, Value], partitions: list[dict[str, Value]]) -> None:
    known = [f"id {id_text(topic)}" * (id_text(topic) is not None), "internal" * topic.is_internal]
    facts = ", ".join(fact for fact in known if fact)
    click.echo(f"{topic.name}  ({facts})" if facts else topic.name)
    for name, value in configs.items():
        click.echo(f"  {name} = {cell(value)}")
    columns = {"partition": "partition", "leader": "leader", "replicas": "replicas", "isr": "isr"}
    columns |= {heading: name for heading, name in _OF_SEVERAL.items() if any(one[name] for one in partitions)}
    columns |= {"earliest": "earliest", "latest": "latest"}
    print_table(tuple(columns), [tuple(_cell(one[name]) for name in columns.values()) for one in partitions])


def _cell(value: Value) -> str:
    if isinstance(value, dict):
        return " ".join(f"{broker}:{lag}" for broker, lag in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else cell(value)
