"""``lamina topics reassign --verify``: how far a plan is, and the end of its throttle."""

from collections.abc import Mapping

import click

from lamina.cli.outcome import FINE, INTERRUPTED, SOMETHING_WRONG, warn
from lamina.cli.reassignment.execution import remove_throttle
from lamina.cli.reassignment.following import (
    DIFFERENT,
    IN_PROGRESS,
    MISSING,
    find_settled_states,
    follow,
    look,
    states_of,
)
from lamina.cli.reassignment.plan_file import read_from, read_plan
from lamina.cli.reassignment.showing import names_text, print_states
from lamina.client.cluster import Cluster
from lamina.client.layout import Layout
from lamina.client.reassignments import UnderWay, moves_under_way
from lamina.planning.moves import Assignments
from lamina.topic_partition import TopicPartition


def verify(cluster: Cluster, *, file: str, wait: bool, preserve_throttles: bool, as_json: bool) -> int:
    """The throttle stays as long as anything is under way in the cluster, as with Kafka's tool."""
    wanted = read_from(file, read_plan, "--file")
    layout, under_way = look(cluster)
    moves = [move for move in moves_under_way(under_way) if move.key in wanted]
    if not (wait and moves):
        states = states_of(wanted, layout, under_way)
        return _end(cluster, wanted, states, layout, under_way, preserve_throttles, as_json)
    try:
        follow(cluster, moves, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        warn("the cluster goes on; run this again to see how far it is")
        return INTERRUPTED
    return report(cluster, wanted, preserve_throttles=preserve_throttles, as_json=as_json)


def report(cluster: Cluster, wanted: Assignments, *, preserve_throttles: bool, as_json: bool) -> int:
    """After a plan was followed to its end."""
    states, layout, under_way = find_settled_states(cluster, wanted)
    return _end(cluster, wanted, states, layout, under_way, preserve_throttles, as_json)


def _end(
    cluster: Cluster,
    wanted: Assignments,
    states: Mapping[TopicPartition, str],
    layout: Layout,
    under_way: UnderWay,
    preserve_throttles: bool,
    as_json: bool,
) -> int:
    replicas = {key: one.replicas for key, one in layout.partitions.items()}
    print_states(states, wanted, replicas, as_json=as_json)
    if not under_way and not preserve_throttles and remove_throttle(cluster, layout, {key[0] for key in wanted}):
        warn("removed the throttle")
    others = [key for key, state in states.items() if state in (DIFFERENT, MISSING)]
    if others:
        warn(f"{names_text(others)}: not what the plan says, and not on the way to it; execute the plan to get there")
        return SOMETHING_WRONG
    if IN_PROGRESS in states.values():
        warn("not complete yet; --wait waits for it")
    return FINE
