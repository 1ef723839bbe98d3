"""``lamina topics delete-records``."""

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.kafka_file import KafkaFileError
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_table
from lamina.cli.topics.lookup import describe_all
from lamina.cli.topics.offsets_file import ALL_RECORDS, Mark, read_marks
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError

_NAMED_AT_MOST = 5
"""Partitions that the question names one by one."""


@click.command(
    "delete-records",
    epilog="""\b
Examples:
  lamina topics delete-records orders --partition 0 --before-offset 1000
  lamina topics delete-records orders --all
  lamina topics delete-records --file offsets.json --yes
\b
FILE is that of Kafka's kafka-delete-records; offset -1 means all records:
  {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 1000}]}""",
)
@topic_argument(required=False)
@click.option("--partition", metavar="N", type=whole(largest=PARTITION_MAX), help="The partition.")
@click.option("--before-offset", metavar="N", type=whole(), help="Delete the records below this offset.")
@click.option("--file", metavar="FILE", help="Partitions and offsets in Kafka's JSON.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Delete all records that are there now, in --partition or in all partitions.",
)
@yes_option
@cluster_options
def delete_records(
    cluster: Cluster,
    topic: str | None,
    partition: int | None,
    before_offset: int | None,
    file: str | None,
    everything: bool,
    yes: bool,
) -> int:
    """Delete the oldest records of partitions, up to an offset."""
    from confluent_kafka import TopicPartition

    if sum((file is not None, before_offset is not None, everything)) != 1:
        raise click.UsageError("Give one of --before-offset, --all and --file.")
    if (file is None) != (topic is not None) or (file is not None and partition is not None):
        raise click.UsageError("Give TOPIC or --file, not both: the file names topics and partitions.")
    if before_offset is not None and partition is None:
        raise click.UsageError("--before-offset needs --partition: each partition has its own offsets.")
    attempts = Attempts(cluster)
    if file is not None:
        marks = _there(cluster, _read(file), attempts)
    else:
        offset = ALL_RECORDS if before_offset is None else before_offset
        marks = _of_topic(cluster, str(topic), partition, offset, attempts)
    if not marks:
        return attempts.status
    confirm(_question(marks), yes)
    wanted = [TopicPartition(mark.topic, mark.partition, mark.offset) for mark in marks]
    futures = cluster.admin().delete_records(wanted)
    asked = ((f"{one.topic}-{one.partition}", future) for one, future in futures.items())
    done = [(name, str(deleted.low_watermark)) for name, deleted in attempts.answers(asked)]
    print_table(("partition", "log start offset"), done)
    return attempts.status


def _of_topic(cluster: Cluster, topic: str, partition: int | None, offset: int, attempts: Attempts) -> list[Mark]:
    if partition is not None:
        return _there(cluster, [Mark(topic, partition, offset)], attempts)
    found = describe_all(cluster, [topic], attempts)
    return [Mark(one.name, each.id, offset) for one in found for each in one.partitions]


def _there(cluster: Cluster, marks: list[Mark], attempts: Attempts) -> list[Mark]:
    """Those whose partition exists: one that does not would fail the others."""
    topics = [mark.topic for mark in marks]
    found = {one.name: len(one.partitions) for one in describe_all(cluster, topics, attempts)}
    for mark in marks:
        if mark.partition >= found.get(mark.topic, 2**31):
            known = f"the topic has {found[mark.topic]}, counted from 0"
            attempts.fail(mark.topic, ClientError(f"there is no partition {mark.partition}; {known}"))
    return [mark for mark in marks if mark.partition < found.get(mark.topic, 0)]


def _read(file: str) -> list[Mark]:
    with open(file, "rb") as opened:
        try:
            return read_marks(opened.read())
        except KafkaFileError as error:
            raise click.BadParameter(f"{file}: {error}.", param_hint="--file") from error


def _question(marks: list[Mark]) -> str:
    if len(marks) > _NAMED_AT_MOST:
        topics = ", ".join(dict.fromkeys(mark.topic for mark in marks))
        return f"Delete records in {len(marks)} partitions of {topics}?"
    each = (
        f"all records of {mark.topic}-{mark.partition}"
        if mark.offset == ALL_RECORDS
        else f"the records of {mark.topic}-{mark.partition} below offset {mark.offset}"
        for mark in marks
    )
    return f"Delete {', '.join(each)}?"
