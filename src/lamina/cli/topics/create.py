"""``lamina topics create``."""

import re

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.options.numbers import REPLICATION_FACTOR_MAX, whole
from lamina.cli.options.settings import settings_pairs_from
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import counted
from lamina.cli.topics.lookup import describe_all
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Refused

_MOST_PARTITIONS = 100_000
"""librdkafka asks for no more at once."""
_CREATED, _EXISTS, _VALID = "created", "exists", "valid"
_ASSIGNMENT = re.compile(r"\d{1,9}(:\d{1,9})*(,\d{1,9}(:\d{1,9})*)*")


@click.command(
    "create",
    epilog="""\b
Examples:
  lamina topics create orders
  lamina topics create orders payments --partitions 6 --replication-factor 3
  lamina topics create customers --config cleanup.policy=compact --if-not-exists
  lamina topics create placed --replica-assignment 1:2,2:3""",
)
@topics_argument()
@click.option(
    "--partitions",
    metavar="N",
    type=whole(1, _MOST_PARTITIONS),
    help="How many partitions.  [default: the broker's num.partitions]",
)
@click.option(
    "--replication-factor",
    metavar="N",
    type=whole(1, REPLICATION_FACTOR_MAX),
    help="How many replicas of each partition.  [default: the broker's default.replication.factor]",
)
@click.option(
    "--replica-assignment",
    metavar="ID:ID,…",
    help="The replicas of each partition in turn, by broker id; instead of the two above.",
)
@click.option(
    "--config",
    "configs",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of the topic; a value may have a unit: 7d, 10GiB. May be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Do nothing for a topic that already exists.")
@click.option("--validate-only", "--dry-run", is_flag=True, help="Only check whether they could be created.")
@as_json_option
@cluster_options
def create(
    cluster: Cluster,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> int:
    """Create topics."""
    from confluent_kafka.admin import NewTopic

    assigned = _assignment_from(replica_assignment)
    if assigned and (partitions is not None or replication_factor is not None):
        raise click.UsageError("Give --replica-assignment, or --partitions and --replication-factor, not both.")
    config = settings_pairs_from(configs, "--config")
    new = [
        NewTopic(topic, len(assigned), replica_assignment=assigned, config=config)
        if assigned
        else NewTopic(topic, partitions or -1, replication_factor or -1, config=config)
        for topic in dict.fromkeys(topics)
    ]
    attempts = Attempts(cluster)
    for topic, future in cluster.admin().create_topics(new, validate_only=validate_only).items():
        try:
            cluster.answer(future)
            outcome = _VALID if validate_only else _CREATED
        except Refused as error:
            if not (if_not_exists and error.name == "TOPIC_ALREADY_EXISTS"):
                attempts.fail(topic, _with_default(error) if replication_factor is None and not assigned else error)
                continue
            outcome = _EXISTS
        count = None if outcome == _VALID else _partition_count(cluster, topic, attempts)
        if as_json:
            print_json({"type": "topic_creation", "name": topic, "outcome": outcome, "partition_count": count})
        else:
            click.echo(_sentence(topic, outcome, count))
    return attempts.status


def _partition_count(cluster: Cluster, topic: str, attempts: Attempts) -> int | None:
    found = describe_all(cluster, [topic], attempts)
    return len(found[0].partitions) if found else None


def _sentence(topic: str, outcome: str, partition_count: int | None) -> str:
    if outcome == _VALID:
        return f"Topic {topic} could be created."
    if outcome == _EXISTS:
        return f"Topic {topic} already exists."
    partitions = "" if partition_count is None else f" ({counted(partition_count, 'partition')})"
    return f"Created topic {topic}{partitions}."


def _with_default(error: Refused) -> ClientError:
    """Who gave no replication factor has to hear whose it is."""
    if error.name != "INVALID_REPLICATION_FACTOR":
        return error
    return ClientError(f"{error}; that is the brokers' default: give --replication-factor, or add brokers")


def _assignment_from(text: str | None) -> list[list[int]]:
    """Kafka's form: partitions with commas between, and of each its brokers with colons between."""
    if text is None:
        return []
    if not _ASSIGNMENT.fullmatch(text):
        raise click.BadParameter(
            f"{text!r} is not of the form 1:2,2:3, with colons between broker ids and commas between partitions.",
            param_hint="--replica-assignment",
        )
    return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
