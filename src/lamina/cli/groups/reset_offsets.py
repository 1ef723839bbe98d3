"""``lamina groups reset-offsets``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lamina.cli.groups.chosen import Chosen, chosen_option, is_chosen
from lamina.cli.groups.lookup import Partition, committed, state_of
from lamina.cli.groups.reset_file import write_offsets
from lamina.cli.groups.reset_target import Place, Target, target_options
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import group_argument
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Value, print_json, print_table
from lamina.cli.printing.text import cell, counted
from lamina.cli.topics.lookup import EARLIEST
from lamina.cli.topics.lookup import describe_all as describe_topics
from lamina.cli.topics.partition_offsets import PartitionOffsets
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Refused
from lamina.topic_partition import name_of

if TYPE_CHECKING:
    from confluent_kafka.admin import ConsumerGroupDescription

_INACTIVE = ("Empty", "Dead")


@click.command(
    "reset-offsets",
    epilog="""\b
Examples:
  lamina groups reset-offsets billing --topic orders --to-earliest
  lamina groups reset-offsets billing --topic orders:0,2 --to-time 2026-01-31T12:00 --execute
  lamina groups reset-offsets billing --all-topics --shift-by -100 --execute
  lamina groups reset-offsets billing --all-topics --to-current --export > offsets.csv
  lamina groups reset-offsets billing --from-file offsets.csv --execute""",
)
@group_argument()
@chosen_option("A topic, or some of its partitions; may be repeated.")
@click.option("--all-topics", is_flag=True, help="Every topic for which the group has committed offsets.")
@target_options
@click.option("--execute", is_flag=True, help="Commit the new offsets; without this they are only shown.")
@click.option("--export", is_flag=True, help="Print the new offsets as Kafka's CSV, for --from-file.")
@as_json_option
@cluster_options
def reset_offsets(
    cluster: Cluster,
    group: str,
    chosen: tuple[Chosen, ...],
    all_topics: bool,
    target: Target,
    execute: bool,
    export: bool,
    as_json: bool,
) -> int:
    """Reset the committed offsets of a group that has no members.

    Without --execute the new offsets are only shown.
    """
    if export and as_json:
        raise click.UsageError("Give --export (CSV) or --json, not both.")
    if target.place is Place.FILE:
        if all_topics:
            raise click.UsageError("--from-file names the partitions: leave out --all-topics.")
    elif bool(chosen) == all_topics:
        raise click.UsageError("Give --topic TOPIC, which may be repeated, or --all-topics.")
    attempts = Attempts(cluster)
    described = cluster.answer(cluster.admin().describe_consumer_groups([group])[group])
    _check_inactive(described)
    before = committed(cluster, group)
    wanted = _wanted(cluster, group, chosen, target, before, attempts)
    plan = _plan(cluster, wanted, target, before, attempts)
    done = _commit(cluster, group, plan, attempts) if execute else plan
    if export:
        click.echo(write_offsets(done), nl=False)
    elif as_json:
        for (topic, number), offset in done.items():
            row: dict[str, Value] = {"type": "reset_offset", "group": group, "topic": topic, "partition": number}
            print_json({**row, "committed": before.get((topic, number)), "offset": offset, "executed": execute})
    else:
        print_table(
            ("topic", "partition", "committed offset", "new offset"),
            [(topic, str(at), cell(before.get((topic, at))), str(offset)) for (topic, at), offset in done.items()],
        )
    if not execute and plan:
        warn(f"nothing was changed; give --execute to reset {counted(len(plan), 'offset')} of {group}")
    return attempts.status


def _check_inactive(group: "ConsumerGroupDescription") -> None:
    if state_of(group) not in _INACTIVE:
        raise ClientError(
            f"{group.group_id} is active (state {state_of(group)}, {counted(len(group.members), 'member')}): "
            "stop its members first, or they will commit over the new offsets"
        )


def _wanted(
    cluster: Cluster,
    group: str,
    chosen: tuple[Chosen, ...],
    target: Target,
    before: Mapping[Partition, int],
    attempts: Attempts,
) -> dict[Partition, int | None]:
    """The partitions that are meant, with the offset that a file gives each."""
    if target.place is Place.FILE:
        in_file = target.offsets_in_file(group)
        return {key: offset for key, offset in in_file.items() if not chosen or is_chosen(chosen, *key)}
    if not chosen:
        if not before:
            raise ClientError(f"{group} has no committed offsets; name topics with --topic")
        return dict.fromkeys(before)
    found: dict[Partition, int | None] = {}
    described = {topic.name: topic for topic in describe_topics(cluster, [one.topic for one in chosen], attempts)}
    for one in chosen:
        if one.topic not in described:
            continue
        there = [partition.id for partition in described[one.topic].partitions]
        for number in there if one.partitions is None else one.partitions:
            if number in there:
                found[one.topic, number] = None
            else:
                attempts.fail(
                    one.topic,
                    ClientError(f"there is no partition {number}; the topic has {len(there)}, counted from 0"),
                )
    return dict(sorted(found.items()))


def _plan(
    cluster: Cluster,
    wanted: Mapping[Partition, int | None],
    target: Target,
    before: Mapping[Partition, int],
    attempts: Attempts,
) -> dict[Partition, int]:
    """The new offsets, none of them outside its partition."""
    lookup = PartitionOffsets(cluster, attempts)
    latest = lookup.latest(wanted)
    earliest = lookup.at(latest, EARLIEST)
    timed = lookup.at(latest, target.number) if target.place is Place.TIME else {}
    lookup.report()
    plan: dict[Partition, int] = {}
    for key, in_file in wanted.items():
        if key not in latest or key not in earliest:
            continue
        start, end = earliest[key], latest[key]
        current = before.get(key)
        name = name_of(key)
        if target.place is Place.SHIFT and current is None:
            attempts.fail(name, ClientError("there is no committed offset to shift; give --to-offset"))
            continue
        if target.place is Place.TIME and key not in timed:
            continue
        offset = {
            Place.EARLIEST: start,
            Place.LATEST: end,
            Place.CURRENT: end if current is None else current,
            Place.OFFSET: target.number,
            Place.TIME: end if timed.get(key, -1) < 0 else timed.get(key, end),
            Place.SHIFT: (current or 0) + target.number,
            Place.FILE: in_file if in_file is not None else end,
        }[target.place]
        plan[key] = min(max(offset, start), end)
        if plan[key] != offset:
            warn(f"{name} has offsets {start} to {end}: using {plan[key]} instead of {offset}")
    return plan


def _commit(cluster: Cluster, group: str, plan: Mapping[Partition, int], attempts: Attempts) -> dict[Partition, int]:
    """Those that were committed."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    if not plan:
        return {}
    offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in plan.items()]
    asked = cluster.admin().alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)])
    done: dict[Partition, int] = {}
    for one in cluster.answer(asked[group]).topic_partitions:
        if one.error is None:
            done[one.topic, one.partition] = one.offset
        elif one.error.name() == "UNKNOWN_MEMBER_ID":
            raise ClientError(f"a member joined {group} meanwhile, and nothing was reset: stop it, and try again")
        else:
            attempts.fail(f"{one.topic}-{one.partition}", Refused(one.error))
    return done
