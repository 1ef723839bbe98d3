"""``lamina brokers decommission``: a broker keeps nothing any more, and can leave for good."""

from collections.abc import Collection

import click

from lamina.cli.confirmation import confirm
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.reassignment.carrying_out import Options, Situation, carry_out, plan_options
from lamina.cli.reassignment.following import look
from lamina.cli.reassignment.showing import names_text
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout
from lamina.client.unregistering import unregister
from lamina.planning.moves import Assignments
from lamina.planning.rebalance import decommission as plan_decommission
from lamina.planning.replicas import NotEnoughBrokers
from lamina.topic_partition import TopicPartition


@click.command(
    "decommission",
    epilog="""\b
Examples:
  lamina brokers decommission 2 --dry-run
  lamina brokers decommission 2 --throttle 50MB
  lamina brokers decommission 2 --unregister --yes""",
)
@click.argument("broker_id", metavar="ID", type=whole(largest=PARTITION_MAX))
@click.option("--unregister", "is_leaving", is_flag=True, help="Then take it out of the cluster: one of Lamina stops.")
@plan_options
def decommission(cluster: Cluster, options: Options, broker_id: int, is_leaving: bool) -> int:
    """Move all replicas away from a broker, running or dead, to the others.

    No other replica moves. A command that was interrupted is run again: it goes on where the cluster is.
    """
    if is_leaving and not options.wait:
        raise click.UsageError("--unregister has to wait until nothing is left: give it without --no-wait.")
    situation = Situation.find(cluster)
    layout = situation.layout
    is_known = any(broker_id in placed.replicas for placed in layout.partitions.values())
    if not is_known and broker_id not in layout.racks and not is_leaving:
        raise ClientError(f"there is no broker {broker_id}, and it keeps nothing; `lamina brokers` shows all brokers")
    others = {one: rack for one, rack in layout.racks.items() if one != broker_id}
    try:
        plan = plan_decommission(situation.assignments, others, {broker_id})
    except NotEnoughBrokers as error:
        raise ClientError(
            f"the other brokers keep all the replicas that they can of {names_text(error.keys)}; add a broker, or give "
            "them fewer replicas first with `lamina topics reassign --generate --replication-factor`"
        ) from error
    moving = {key for key, placed in layout.partitions.items() if broker_id in placed.replicas}
    status = carry_out(
        cluster,
        situation,
        plan,
        options,
        question=f"Move all replicas away from broker {broker_id}{', and take it out of the cluster' * is_leaving}?",
        again=f"lamina brokers decommission {broker_id}",
        elect=lambda now, wanted: _led_elsewhere(now, wanted, moving),
    )
    if options.dry_run or not options.wait or status != FINE:
        return status
    if is_leaving and plan == situation.assignments:
        confirm(f"Take broker {broker_id} out of the cluster?", options.yes)
    return _leave(cluster, broker_id, is_leaving, options)


def _led_elsewhere(layout: Layout, plan: Assignments, keys: Collection[TopicPartition]) -> list[TopicPartition]:
    """Of what has moved, once it has: before, nobody is elected because of it."""
    return [
        key
        for key in sorted(keys & layout.partitions.keys())
        if layout.partitions[key].replicas == plan[key]
        and plan[key][0] != layout.partitions[key].leader
        and plan[key][0] in layout.partitions[key].in_sync
    ]


def _leave(cluster: Cluster, broker_id: int, is_leaving: bool, options: Options) -> int:
    """Topics may have been created on the broker meanwhile."""
    layout, _ = look(cluster)
    left = sorted(key for key, placed in layout.partitions.items() if broker_id in placed.replicas)
    if left:
        warn(f"broker {broker_id} keeps {names_text(left)}, which came meanwhile; run this again")
        return SOMETHING_WRONG
    if is_leaving:
        was_known = unregister(cluster, broker_id)
        warn(f"broker {broker_id} is unregistered" if was_known else f"broker {broker_id} is not registered any more")
    else:
        warn(
            f"broker {broker_id} keeps nothing now; stop it, or take it out of the cluster with "
            f"`lamina brokers decommission {broker_id} --unregister`"
        )
    if options.as_json:
        print_json({"type": "decommission", "broker": broker_id, "unregistered": is_leaving})
    return FINE
