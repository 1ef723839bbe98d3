"""A plan of Lamina's own from the review to the end: shown, saved, confirmed, executed, followed.

Owns the options of the commands that make one. When such a command is interrupted, the cluster goes on; run again, the
command plans from where that leads, follows it, and ends what it had begun. Must not know how a plan is made.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options, with_parameters
from lamina.cli.outcome import FINE, INTERRUPTED, SOMETHING_WRONG, Attempts, warn
from lamina.cli.printing.text import bytes_text, counted
from lamina.cli.reassignment.execution import begin, elect_preferred, find_every_throttle, throttle_option
from lamina.cli.reassignment.following import COMPLETE, find_settled_states, follow, look
from lamina.cli.reassignment.plan_file import save
from lamina.cli.reassignment.showing import (
    names_text,
    print_brokers,
    print_moves,
    print_states,
    sum_text,
    warn_of_racks,
)
from lamina.cli.usage import NotConfirmed
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout, find_sizes
from lamina.client.reassignments import UnderWay, moves_under_way, targets
from lamina.client.throttles import Throttles, remove_throttles
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.planning.copying import leader_sizes
from lamina.planning.moves import Assignments, Move, Replicas, moves_between
from lamina.topic_partition import TopicPartition

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Options:
    throttle: int | None
    output: str | None
    dry_run: bool
    yes: bool
    wait: bool
    as_json: bool


def plan_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``options`` and ``cluster`` in their place."""

    def with_throttle(*args: Any, throttle: int | None, options: Options, **rest: Any) -> int:
        return command(*args, options=replace(options, throttle=throttle), **rest)

    return leader_plan_options(with_parameters(command, with_throttle, throttle_option))


def leader_plan_options(command: Callable[..., int]) -> Callable[..., int]:
    """The same for plans that copy nothing."""

    def with_options(
        *args: Any, output: str | None, dry_run: bool, yes: bool, no_wait: bool, as_json: bool, **rest: Any
    ) -> int:
        return command(*args, options=Options(None, output, dry_run, yes, not no_wait, as_json), **rest)

    return cluster_options(
        with_parameters(
            command,
            with_options,
            click.option("--output", metavar="FILE", help="Write the plan to FILE, in the JSON of Kafka's tools."),
            click.option("--dry-run", is_flag=True, help="Only show the plan."),
            click.option("--no-wait", is_flag=True, help="Begin, and do not wait until all is complete."),
            yes_option,
            as_json_option,
        )
    )


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is, and where what is under way leads."""

    layout: Layout
    under_way: UnderWay
    assignments: Assignments
    sizes: Mapping[TopicPartition, int]
    """Of the partitions, at their leaders."""

    @classmethod
    def find(cls, cluster: Cluster) -> "Situation":
        layout, under_way = look(cluster)
        sizes = find_sizes(cluster, layout, layout.partitions.keys())
        return cls(layout, under_way, targets(layout, under_way), leader_sizes(layout.leaders, sizes))


def carry_out(
    cluster: Cluster,
    situation: Situation,
    plan: Mapping[TopicPartition, Replicas],
    options: Options,
    *,
    question: str,
    again: str,
    elect: Callable[[Layout, Assignments], Collection[TopicPartition]],
    clocks: Clocks = SYSTEM_CLOCKS,
) -> int:
    """Returns the status. ``elect`` says of which partitions the first replicas have to be elected in the end."""
    moves = moves_between(situation.assignments, plan)
    before = moves_under_way(situation.under_way)
    _check_leaders(situation, moves)
    if options.output is not None:
        save(options.output, {move.key: move.after for move in moves})
    _show(situation, plan, moves, options)
    to_elect = elect(situation.layout, plan)
    if options.dry_run:
        return FINE
    if not (moves or before or to_elect):
        _end_without_moves(cluster, situation.layout, options)
        return FINE
    if moves or to_elect:
        confirm(question, options.yes)
    attempts = Attempts(cluster)
    begun = begin(cluster, moves, situation.layout, situation.under_way, options.throttle, attempts)
    followed = [*begun, *(one for one in before if one.key not in {move.key for move in begun})]
    if not options.wait:
        warn(f"begun; run `{again}` again to follow it to its end")
        return attempts.status
    began = clocks.monotonic_seconds()
    try:
        progress = follow(cluster, followed, as_json=options.as_json, clocks=clocks) if followed else None
    except (KeyboardInterrupt, click.Abort):
        warn(f"the cluster goes on; run `{again}` again to follow it to its end")
        return INTERRUPTED
    wanted = {one.key: one.after for one in followed}
    may_be_own = options.throttle is not None or bool(before)
    status = _end(cluster, wanted, plan, elect, attempts, options, throttle_may_be_own=may_be_own)
    if progress is not None:
        took = clocks.monotonic_seconds() - began
        copied = f", {bytes_text(progress.copied_bytes)} copied" if progress.total_bytes else ""
        warn(f"changed {counted(progress.partitions, 'partition')}{copied} in {took:.1f} s")
    return status


def _end_without_moves(cluster: Cluster, layout: Layout, options: Options) -> None:
    """An earlier run may have begun what is complete by now, and not waited for it: its throttle may be left."""
    found = find_every_throttle(cluster, layout)
    if not found:
        return
    if options.throttle is None:
        try:
            confirm(
                f"Remove the replication throttle of {_owners_text(found)}, perhaps of an earlier run?", options.yes
            )
        except NotConfirmed:
            warn(f"the replication throttle of {_owners_text(found)} stays: to remove it, run this with --yes")
            return
    remove_throttles(cluster, found)
    warn("removed the throttle")


def _end_throttle(cluster: Cluster, layout: Layout, *, may_be_own: bool) -> None:
    found = find_every_throttle(cluster, layout)
    if found and may_be_own:
        remove_throttles(cluster, found)
        warn("removed the throttle")
    elif found:
        warn(f"the replication throttle of {_owners_text(found)} stays: this command has not set it")


def _owners_text(found: Throttles) -> str:
    owners = [*(f"broker {one}" for one in found.rates), *(f"topic {one}" for one in found.replicas)]
    others = f" and {counted(len(owners) - _SHOWN, 'other')}" if len(owners) > _SHOWN else ""
    return ", ".join(owners[:_SHOWN]) + others


def _check_leaders(situation: Situation, moves: Sequence[Move]) -> None:
    """Without a leader a partition cannot be copied, and a plan that moves it would never be complete."""
    headless = [move.key for move in moves if move.added and move.key not in situation.layout.leaders]
    if headless:
        raise ClientError(
            f"nobody leads {names_text(headless)}, so they cannot be copied; start a broker that keeps them, or see "
            "`lamina topics elect --unclean`"
        )


def _show(situation: Situation, plan: Assignments, moves: Sequence[Move], options: Options) -> None:
    print_moves(moves, situation.sizes, as_json=options.as_json)
    if any(move.added for move in moves):
        warn_of_racks(situation.layout.racks)
    if moves:
        if not options.as_json:
            click.echo()
        print_brokers(situation.assignments, plan, situation.layout.racks, as_json=options.as_json)
        warn(sum_text(moves, situation.sizes))
    if situation.under_way:
        warn(f"under way already: {names_text(situation.under_way)}")


def _end(
    cluster: Cluster,
    wanted: Assignments,
    plan: Assignments,
    elect: Callable[[Layout, Assignments], Collection[TopicPartition]],
    attempts: Attempts,
    options: Options,
    *,
    throttle_may_be_own: bool,
) -> int:
    """What belongs to the end of a plan: leaders, throttles, and whether all is as it should be.

    A throttle may be this plan's own where this run has set one, or an earlier run began what was under way.
    """
    states, layout, under_way = find_settled_states(cluster, wanted)
    elect_preferred(cluster, elect(layout, plan), attempts)
    if not under_way:
        _end_throttle(cluster, layout, may_be_own=throttle_may_be_own)
    replicas = {key: one.replicas for key, one in layout.partitions.items()}
    if options.as_json:
        print_states(states, wanted, replicas, as_json=True)
    others = [key for key, state in states.items() if state != COMPLETE]
    if others:
        warn(f"somebody else has changed these meanwhile: {names_text(others)}; look, and run this again")
        return SOMETHING_WRONG
    return attempts.status
