"""Beginning a plan, and what belongs to it when it is complete: leaders that return, a throttle that is removed.

Must not know how a plan is made or shown.
"""

from collections.abc import Iterable, Sequence

import click

from lamina.cli.options.units import SIZES, size_bytes
from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster
from lamina.client.elections import NOT_NEEDED, elect_leaders
from lamina.client.layout import Layout
from lamina.client.reassignments import UnderWay, alter_reassignments, moves_under_way
from lamina.client.throttles import Throttles, find_throttles, remove_throttles, set_throttles
from lamina.planning.moves import Move
from lamina.planning.throttled_replicas import throttled_brokers, throttled_replicas
from lamina.topic_partition import TopicPartition, name_of


def _rate(given: str) -> int:
    amount = int(given) if given.isascii() and given.isdigit() else size_bytes(given.strip().removesuffix("/s"))
    if amount is None or amount < 1 or amount != int(amount):
        raise click.BadParameter(f"{given!r} is not bytes per second: give a number, or a size such as {SIZES}")
    return int(amount)


throttle_option = click.option(
    "--throttle",
    metavar="RATE",
    type=_rate,
    help="How many bytes per second each broker sends and fetches at most for replicas that copy, such as 50MB.",
)


def begin(
    cluster: Cluster,
    moves: Sequence[Move],
    layout: Layout,
    under_way: UnderWay,
    throttle: int | None,
    attempts: Attempts,
) -> list[Move]:
    """Those that were begun; of the others the attempts tell. A throttle holds for what was under way before too."""
    if throttle is not None:
        wanted = {move.key for move in moves}
        copying = [*moves, *(move for move in moves_under_way(under_way) if move.key not in wanted)]
        brokers = throttled_brokers(copying) & layout.racks.keys()
        set_throttles(cluster, brokers, throttled_replicas(copying), throttle)
    refused = alter_reassignments(cluster, {move.key: move.after for move in moves})
    for key, error in sorted(refused.items(), key=lambda one: one[0]):
        attempts.fail(name_of(key), error)
    begun = [move for move in moves if move.key not in refused]
    if throttle is not None and not begun and not under_way:
        remove_throttle(cluster, layout, {move.key[0] for move in moves})
    return begun


def elect_preferred(cluster: Cluster, keys: Iterable[TopicPartition], attempts: Attempts) -> int:
    """How many were elected."""
    wanted = sorted(keys)
    elected = 0
    for key, refused in elect_leaders(cluster, wanted).items() if wanted else ():
        if refused is None:
            elected += 1
        elif refused.name != NOT_NEEDED:
            attempts.fail(name_of(key), refused)
    return elected


def remove_throttle(cluster: Cluster, layout: Layout, topics: Iterable[str]) -> bool:
    """From all brokers that are there, as Kafka's tool does, and from these topics. Whether there was one."""
    found = find_throttles(cluster, layout.racks, set(topics))
    remove_throttles(cluster, found)
    return bool(found)


def find_every_throttle(cluster: Cluster, layout: Layout) -> Throttles:
    """Of all topics too: some may have been complete before, and the brokers that had a rate may be gone."""
    return find_throttles(cluster, layout.racks, {topic for topic, _ in layout.partitions})
