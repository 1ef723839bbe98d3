"""``lamina topics reassign --execute``: a plan begins."""

import click

from lamina.cli.outcome import INTERRUPTED, Attempts, warn
from lamina.cli.reassignment.execution import begin
from lamina.cli.reassignment.following import find_settled_states, follow, look
from lamina.cli.reassignment.plan_file import read_from, read_plan, save
from lamina.cli.reassignment.showing import names_text, print_states
from lamina.cli.topics.reassign.verify import report
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout
from lamina.planning.moves import Assignments, Move


def execute(
    cluster: Cluster,
    *,
    file: str,
    throttle: int | None,
    additional: bool,
    save_current: str | None,
    wait: bool,
    preserve_throttles: bool,
    as_json: bool,
) -> int:
    wanted = read_from(file, read_plan, "--file")
    layout, under_way = look(cluster)
    _check(wanted, layout)
    if under_way and not additional:
        raise ClientError(
            f"other partitions are being reassigned: {names_text(under_way)}; wait until that is complete, or give "
            "--additional"
        )
    current = {key: under_way[key].origin if key in under_way else layout.partitions[key].replicas for key in wanted}
    if save_current is not None:
        save(save_current, current)
    attempts = Attempts(cluster)
    moves = [Move(key, current[key], replicas) for key, replicas in sorted(wanted.items())]
    begun = begin(cluster, moves, layout, under_way, throttle, attempts)
    if not begun:
        return attempts.status
    if not wait:
        shown = {move.key: move.after for move in begun}
        # What is quick is complete by now, and the broker that is asked may not have heard of it.
        states, layout, _ = find_settled_states(cluster, shown)
        print_states(states, shown, {key: one.replicas for key, one in layout.partitions.items()}, as_json=as_json)
        warn(f"`lamina topics reassign --verify --wait --file {file}` shows how far it is, and removes throttles")
        return attempts.status
    try:
        follow(cluster, begun, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        warn(f"the cluster goes on; `lamina topics reassign --verify --wait --file {file}` shows how far it is")
        return INTERRUPTED
    return max(
        attempts.status,
        report(cluster, {one.key: one.after for one in begun}, preserve_throttles=preserve_throttles, as_json=as_json),
    )


def _check(wanted: Assignments, layout: Layout) -> None:
    """What kafka-reassign-partitions checks before it sends anything."""
    missing = [key for key in wanted if key not in layout.partitions]
    if missing:
        raise ClientError(f"there is no partition {names_text(missing)}; `lamina topics describe` shows all partitions")
    unknown = sorted({one for key, replicas in wanted.items() for one in replicas} - layout.racks.keys())
    kept = {one for key in wanted for one in layout.partitions[key].replicas}
    if set(unknown) - kept:
        first = min(set(unknown) - kept)
        raise ClientError(f"there is no broker {first}; `lamina brokers` shows all brokers")
