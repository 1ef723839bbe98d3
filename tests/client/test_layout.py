"""Where replicas are and how large, from what brokers answer."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from lamina.client.layout import Layout, Placed, ask_layout, ask_sizes
from lamina.client.reassignments import Reassignment, moves_under_way, targets
from lamina.errors import NetworkError
from lamina.peer.call import Call
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Broker, Controller, Target
from lamina.planning.moves import Move


def partition(index: int, leader: int, replicas: list[int]) -> SimpleNamespace:
    return SimpleNamespace(partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=replicas[:1])


class Answering:
    """Broker 2 does not answer, and broker 3 is not there."""

    def __init__(self) -> None:
        self.metadata = SimpleNamespace(
            brokers=[SimpleNamespace(node_id=1, rack="a"), SimpleNamespace(node_id=2, rack=None)],
            topics=[
                SimpleNamespace(name="t", error_code=0, partitions=[partition(0, 1, [1, 2]), partition(1, -1, [3, 1])]),
                SimpleNamespace(name="going", error_code=3, partitions=[]),
            ],
        )
        self.asked: list[int] = []

    async def request(self, to: Target, call: Call[Any]) -> Any:
        if to == Controller():
            return self.metadata
        assert isinstance(to, Broker)
        self.asked.append(to.broker_id)
        if to.broker_id == 2:
            raise NetworkError("gone")
        sizes = [
            SimpleNamespace(partition_index=index, partition_size=10 + index, offset_lag=0, is_future_key=False)
            for index in (0, 1)
        ]
        moving = SimpleNamespace(partition_index=0, partition_size=3, offset_lag=4, is_future_key=True)
        directories = [[SimpleNamespace(name="t", partitions=sizes)], [SimpleNamespace(name="t", partitions=[moving])]]
        return SimpleNamespace(results=[SimpleNamespace(log_dir="/d", topics=topics) for topics in directories])


LAYOUT = Layout(
    {1: "a", 2: None},
    {("t", 0): Placed((1, 2), 1, frozenset({1})), ("t", 1): Placed((3, 1), None, frozenset({3}))},
)


def test_every_partition_is_told_with_its_leader_if_it_has_one() -> None:
    found = asyncio.run(ask_layout(cast(ClusterClient, Answering())))
    assert found == LAYOUT
    assert found.leaders == {("t", 0): 1}


def test_sizes_are_those_of_brokers_that_answer_and_not_of_copies_between_directories() -> None:
    cluster = Answering()
    sizes = asyncio.run(ask_sizes(cast(ClusterClient, cluster), LAYOUT, [("t", 0), ("t", 1), ("gone", 0)]))
    assert sizes == {(1, ("t", 0)): 10, (1, ("t", 1)): 11}
    assert sorted(cluster.asked) == [1, 2]


def test_what_is_under_way_counts_as_where_it_leads() -> None:
    under_way = {("t", 0): Reassignment((4, 1, 2), adding=(4,), removing=(2,))}
    assert targets(LAYOUT, under_way) == {("t", 0): (4, 1), ("t", 1): (3, 1)}
    assert moves_under_way(under_way) == [Move(("t", 0), (1, 2), (4, 1))]
