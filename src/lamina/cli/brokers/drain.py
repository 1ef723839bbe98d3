"""``lamina brokers drain``: a broker leads nothing any more, and keeps its replicas.

It is done by changing the order of replicas, which a reassignment does without copying, and by electing the new first
ones. A state of the broker, as a controlled shutdown has it, would be wrong here: it takes the broker out of the
in-sync sets, so every partition that it keeps could bear one failure less for as long as the work takes, and it ends
with the broker's session. An order is stored with the topic, the controller's own balancing of leaders follows it
(R49), and Kafka knows it too.
"""

from collections.abc import Collection

import click

from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.text import counted
from lamina.cli.reassignment.carrying_out import Options, Situation, carry_out, leader_plan_options
from lamina.cli.reassignment.following import look
from lamina.cli.reassignment.showing import names_text
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout
from lamina.planning.leaders import lead_elsewhere
from lamina.planning.moves import Assignments
from lamina.topic_partition import TopicPartition


@click.command(
    "drain",
    epilog="""\b
Examples:
  lamina brokers drain 2
  lamina brokers drain 2 --yes --json
  lamina brokers rebalance --leaders      # afterwards, to give it leaders again""",
)
@click.argument("broker_id", metavar="ID", type=whole(largest=PARTITION_MAX))
@leader_plan_options
def drain(cluster: Cluster, options: Options, broker_id: int) -> int:
    """Have other brokers lead all partitions that a broker leads, before work on its machine.

    It keeps its replicas and follows the others. Replicas that were first in their list become last, so leaders do not
    return by themselves.
    """
    situation = Situation.find(cluster)
    if broker_id not in situation.layout.racks:
        raise ClientError(f"there is no broker {broker_id}, so it leads nothing; `lamina brokers` shows all brokers")
    plan = _plan(situation, broker_id)
    led = [key for key, leader in situation.layout.leaders.items() if leader == broker_id]
    if not led and plan == situation.assignments:
        warn(f"broker {broker_id} leads nothing")
        return FINE

    def led_by_it(layout: Layout, _: Assignments) -> Collection[TopicPartition]:
        return sorted(key for key, leader in layout.leaders.items() if leader == broker_id)

    status = carry_out(
        cluster,
        situation,
        plan,
        options,
        question=f"Have others lead the {counted(len(led), 'partition')} that broker {broker_id} leads?",
        again=f"lamina brokers drain {broker_id}",
        elect=led_by_it,
    )
    if options.dry_run or not options.wait or status != FINE:
        return status
    return _verdict(cluster, broker_id)


def _plan(situation: Situation, broker_id: int) -> Assignments:
    """Raises ClientError where nobody else can lead a partition."""
    in_sync: dict[TopicPartition, Collection[int]] = {}
    alone, behind = [], []
    for key, replicas in sorted(situation.assignments.items()):
        placed = situation.layout.partitions[key]
        if broker_id not in (replicas[0], placed.leader):
            continue
        others = [one for one in replicas if one in placed.in_sync and one != broker_id]
        if set(replicas) <= {broker_id}:
            alone.append(key)
        elif not others:
            behind.append(key)
        elif replicas[0] not in others:
            in_sync[key] = others
    if alone:
        raise ClientError(
            f"nobody else keeps {names_text(alone)}; give more replicas with `lamina topics reassign`, or move "
            f"everything away with `lamina brokers decommission {broker_id}`"
        )
    if behind:
        raise ClientError(
            f"nobody else is in sync with {names_text(behind)}; `lamina topics describe` shows when others are"
        )
    return lead_elsewhere(situation.assignments, in_sync, {broker_id}, situation.layout.racks)


def _verdict(cluster: Cluster, broker_id: int) -> int:
    layout, _ = look(cluster)
    left = sorted(key for key, leader in layout.leaders.items() if leader == broker_id)
    if left:
        warn(f"broker {broker_id} still leads {names_text(left)}; run this again")
        return SOMETHING_WRONG
    warn(f"broker {broker_id} leads nothing now; `lamina brokers rebalance --leaders` gives it leaders again")
    return FINE
