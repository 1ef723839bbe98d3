"""``lamina brokers rebalance``: replicas and leaders evenly over brokers and racks."""

from collections.abc import Collection

import click

from lamina.cli.outcome import warn
from lamina.cli.reassignment.carrying_out import Options, Situation, carry_out, plan_options
from lamina.cli.reassignment.showing import names_text
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout
from lamina.planning.moves import Assignments, moves_between
from lamina.planning.rebalance import rebalance as plan_rebalance
from lamina.planning.rebalance import rebalance_leaders
from lamina.planning.replicas import NotEnoughBrokers
from lamina.topic_partition import TopicPartition


@click.command(
    "rebalance",
    epilog="""\b
Examples:
  lamina brokers rebalance --dry-run
  lamina brokers rebalance --throttle 50MB --output plan.json
  lamina brokers rebalance --leaders --yes""",
)
@click.option("--leaders", is_flag=True, help="Only leaders: nothing is copied.")
@plan_options
def rebalance(cluster: Cluster, options: Options, leaders: bool) -> int:
    """Spread replicas and leaders evenly over the brokers, with as few moves as possible.

    Replicas of a partition are kept in different racks where brokers have racks. The plan is shown and asked about
    before anything begins. A command that was interrupted is run again: it goes on where the cluster is.
    """
    situation = Situation.find(cluster)
    racks = situation.layout.racks
    away = sorted({one for replicas in situation.assignments.values() for one in replicas} - racks.keys())
    if away and not leaders:
        raise ClientError(
            f"broker {away[0]} keeps replicas and is not there; start it, or give its replicas to others with "
            f"`lamina brokers decommission {away[0]}`"
        )
    try:
        plan = (
            rebalance_leaders(situation.assignments, racks)
            if leaders
            else plan_rebalance(situation.assignments, racks, situation.sizes)
        )
    except NotEnoughBrokers as error:
        raise ClientError(f"more replicas than brokers: {names_text(error.keys)}; start the others first") from error
    if not moves_between(situation.assignments, plan) and not _led_elsewhere(situation.layout, plan):
        warn("replicas and leaders are spread evenly already" if not leaders else "leaders are spread evenly already")
    again = "lamina brokers rebalance --leaders" if leaders else "lamina brokers rebalance"
    question = "Move leaders as shown?" if leaders else "Move replicas and leaders as shown?"
    return carry_out(cluster, situation, plan, options, question=question, again=again, elect=_led_elsewhere)


def _led_elsewhere(layout: Layout, plan: Assignments) -> Collection[TopicPartition]:
    """Every partition whose preferred leader could lead it and does not, whether the plan touches it or not."""
    return [
        key
        for key, placed in sorted(layout.partitions.items())
        if key in plan and placed.leader not in (None, plan[key][0]) and plan[key][0] in placed.in_sync
    ]
