"""Waiting until partitions have the replicas that they are to have, with a bar of bytes and the time left.

Must not know why they move.
"""

from collections.abc import Mapping, Sequence

from lamina.cli.printing.progress import bar
from lamina.cli.reassignment.showing import print_progress
from lamina.client.cluster import Cluster
from lamina.client.layout import Layout, ask_layout, ask_sizes
from lamina.client.reassignments import UnderWay, ask_reassignments
from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause
from lamina.peer.cluster import ClusterClient
from lamina.planning.copying import Progress, progress_of, seconds_left
from lamina.planning.moves import Assignments, Move
from lamina.topic_partition import TopicPartition

COMPLETE, IN_PROGRESS, DIFFERENT, MISSING = "complete", "in_progress", "different", "missing"
_POLL_SECONDS = 0.5
_SETTLING_SECONDS = 10.0
"""How long a broker may tell replicas from before after its controller has changed them."""


def follow(cluster: Cluster, moves: Sequence[Move], *, as_json: bool, clocks: Clocks = SYSTEM_CLOCKS) -> Progress:
    """Until none of these partitions is reassigned any more. Brokers are not asked for more than half of the time."""
    first = last = _look(cluster, moves)
    began = clocks.monotonic_seconds()
    if as_json:
        print_progress(first, None)
    of_bytes = first.total_bytes > 0
    look_seconds = 0.0
    with bar("copying" if of_bytes else "moving partitions", of_bytes=of_bytes) as advance:
        while not last.is_complete:
            advance(*_amounts(last, of_bytes))
            pause(max(_POLL_SECONDS, look_seconds))
            asked = clocks.monotonic_seconds()
            progress = _look(cluster, moves)
            look_seconds = clocks.monotonic_seconds() - asked
            if as_json and progress != last:
                took = clocks.monotonic_seconds() - began
                print_progress(progress, seconds_left(progress, first.copied_bytes, took))
            last = progress
    return last


def states_of(wanted: Assignments, layout: Layout, under_way: UnderWay) -> Mapping[TopicPartition, str]:
    """Of each partition, as kafka-reassign-partitions --verify judges it."""

    def state(key: TopicPartition) -> str:
        if key not in layout.partitions:
            return MISSING
        if key in under_way:
            return IN_PROGRESS if under_way[key].target == wanted[key] else DIFFERENT
        return COMPLETE if layout.partitions[key].replicas == wanted[key] else DIFFERENT

    return {key: state(key) for key in sorted(wanted)}


def find_settled_states(
    cluster: Cluster, wanted: Assignments, clocks: Clocks = SYSTEM_CLOCKS
) -> tuple[Mapping[TopicPartition, str], Layout, UnderWay]:
    """How a plan that was begun is, once the broker that is asked has heard of all that the controller did."""
    deadline = clocks.monotonic_seconds() + _SETTLING_SECONDS
    while True:
        layout, under_way = look(cluster)
        states = states_of(wanted, layout, under_way)
        if DIFFERENT not in states.values() or clocks.monotonic_seconds() > deadline:
            return states, layout, under_way
        pause(_POLL_SECONDS)


def look(cluster: Cluster) -> tuple[Layout, UnderWay]:
    async def ask(peers: ClusterClient) -> tuple[Layout, UnderWay]:
        under_way = await ask_reassignments(peers)
        return await ask_layout(peers), under_way

    return cluster.ask(ask)


def _look(cluster: Cluster, moves: Sequence[Move]) -> Progress:
    async def ask(peers: ClusterClient) -> Progress:
        under_way = await ask_reassignments(peers)
        layout = await ask_layout(peers)
        sizes = await ask_sizes(peers, layout, [move.key for move in moves if move.added])
        return progress_of(moves, under_way.keys(), layout.leaders, sizes)

    return cluster.ask(ask)


def _amounts(progress: Progress, of_bytes: bool) -> tuple[int, int]:
    """Never all of it while something is under way: then the bar would go."""
    if of_bytes:
        return min(progress.copied_bytes, progress.total_bytes - 1), progress.total_bytes
    return progress.completed, progress.partitions
