"""``lamina topics elect``."""

from collections.abc import Mapping, Sequence

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.kafka_file import KafkaFileError
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import cell
from lamina.cli.topics.elections_file import read_partitions
from lamina.cli.topics.lookup import current_leaders, describe_all
from lamina.client.cluster import Cluster
from lamina.client.elections import NOT_NEEDED, elect_leaders
from lamina.client.errors import Refused
from lamina.topic_partition import TopicPartition, name_of


@click.command(
    "elect",
    epilog="""\b
Examples:
  lamina topics elect --all
  lamina topics elect orders --partition 0
  lamina topics elect --file elections.json
  lamina topics elect orders --partition 0 --unclean
\b
FILE is that of Kafka's kafka-leader-election:
  {"partitions": [{"topic": "orders", "partition": 0}]}""",
)
@topics_argument(required=False)
@click.option(
    "--partition",
    "indexes",
    metavar="N",
    type=whole(largest=PARTITION_MAX),
    multiple=True,
    help="Only this partition of the topics; may be repeated.",
)
@click.option("--file", metavar="FILE", help="Partitions in Kafka's JSON.")
@click.option("--all", "everything", is_flag=True, help="All partitions of the cluster that need an election.")
@click.option(
    "--unclean",
    is_flag=True,
    help="Where nobody leads, elect a replica that was not in sync: records that it lacks are lost. Asks first.",
)
@yes_option
@as_json_option
@cluster_options
def elect(
    cluster: Cluster,
    topics: tuple[str, ...],
    indexes: tuple[int, ...],
    file: str | None,
    everything: bool,
    unclean: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Have the preferred replicas of partitions lead them: the first ones, if they are in sync.

    A partition that is led as it should be stays as it is.
    """
    if sum((bool(topics), file is not None, everything)) != 1:
        raise click.UsageError("Give TOPIC…, --file or --all: one of them.")
    if indexes and not topics:
        raise click.UsageError("--partition needs TOPIC.")
    attempts = Attempts(cluster)
    if everything:
        wanted = None
    elif file is not None:
        wanted = _read(file)
    else:
        wanted = _of_topics(cluster, topics, indexes, attempts)
    if wanted == []:
        return attempts.status
    if unclean:
        confirm(f"Elect leaders of {_named(wanted)} that may lack records? What they lack is lost.", yes)
    errors = elect_leaders(cluster, wanted, unclean=unclean)
    _show(cluster, _told(attempts, errors), unclean, as_json)
    if everything and not errors:
        warn("no partition needs an election")
    return attempts.status


def _read(file: str) -> list[TopicPartition]:
    with open(file, "rb") as opened:
        try:
            return read_partitions(opened.read())
        except KafkaFileError as error:
            raise click.BadParameter(f"{file}: {error}.", param_hint="--file") from error


def _of_topics(
    cluster: Cluster, topics: Sequence[str], indexes: Sequence[int], attempts: Attempts
) -> list[TopicPartition]:
    """Those that are named, whether they exist or not, or all that there are."""
    if indexes:
        return [(topic, index) for topic in dict.fromkeys(topics) for index in dict.fromkeys(indexes)]
    return [(topic.name, one.id) for topic in describe_all(cluster, topics, attempts) for one in topic.partitions]


def _named(wanted: Sequence[TopicPartition] | None) -> str:
    if wanted is None:
        return "all partitions that nobody leads"
    if len(wanted) > 1:
        return f"{len(wanted)} partitions of {', '.join(dict.fromkeys(topic for topic, _ in wanted))}"
    return name_of(wanted[0])


def _told(attempts: Attempts, errors: Mapping[TopicPartition, Refused | None]) -> Mapping[TopicPartition, bool]:
    """Whether somebody was elected, by partition; of errors the attempts tell."""
    elected = {}
    for key, refused in errors.items():
        if refused is None or refused.name == NOT_NEEDED:
            elected[key] = refused is None
        else:
            attempts.fail(name_of(key), refused)
    return elected


def _show(cluster: Cluster, elected: Mapping[TopicPartition, bool], unclean: bool, as_json: bool) -> None:
    leaders = current_leaders(cluster) if elected else {}
    rows: list[Row] = [
        {
            "type": "election",
            "topic": key[0],
            "partition": key[1],
            "unclean": unclean,
            "elected": is_elected,
            "leader": leaders[key].id if key in leaders else None,
        }
        for key, is_elected in elected.items()
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    table = [(f"{row['topic']}-{row['partition']}", cell(row["leader"]), cell(row["elected"])) for row in rows]
    print_table(("partition", "leader", "elected"), table)
