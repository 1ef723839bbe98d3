"""How far replicas are behind, from what brokers answer."""

import asyncio
from types import SimpleNamespace
from typing import Any

from lamina.client.replicas import Replicas, ask_replicas
from lamina.errors import NotLeaderOrFollower
from lamina.peer.call import Call
from lamina.peer.target import AnyBroker, Broker, Target


class Answering:
    """A cluster of which broker 3 is gone and broker 4 does not answer; ``ends`` is where logs end, by broker."""

    def __init__(self, replicas: list[int], ends: dict[int, int], offline: list[int]) -> None:
        partition = SimpleNamespace(partition_index=0, leader_id=1, replica_nodes=replicas, offline_replicas=offline)
        self.metadata = SimpleNamespace(
            topics=[SimpleNamespace(name="t", partitions=[partition])],
            brokers=[SimpleNamespace(node_id=node_id) for node_id in (1, 2, 4, 5)],
        )
        self.ends = ends
        self.asked: list[int] = []

    async def request(self, to: Target, call: Call[Any]) -> Any:
        if to == AnyBroker():
            return self.metadata
        assert isinstance(to, Broker)
        self.asked.append(to.broker_id)
        if to.broker_id == 4:
            raise NotLeaderOrFollower("gone")
        error = 0 if to.broker_id in self.ends else 6
        answer = SimpleNamespace(partition_index=0, offset=self.ends.get(to.broker_id, -1), error_code=error)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[answer])])


def test_each_replica_that_answers_is_so_far_behind_the_leader() -> None:
    """R37: a broker that is gone is not asked; one that fails, or refuses, is not known."""
    cluster = Answering([1, 2, 3, 4, 5], {1: 100, 2: 93}, offline=[3])
    found = asyncio.run(ask_replicas(cluster, ["t"]))
    assert found == Replicas({("t", 0): (3,)}, {("t", 0): {1: 0, 2: 7}})
    assert sorted(cluster.asked) == [1, 2, 4, 5]


def test_nobody_is_ahead_of_the_leader_and_without_a_leader_nothing_is_known() -> None:
    assert asyncio.run(ask_replicas(Answering([1, 2], {1: 5, 2: 6}, []), ["t"])).lags == {("t", 0): {1: 0, 2: 0}}
    assert asyncio.run(ask_replicas(Answering([1, 2], {2: 6}, []), ["t"])).lags == {("t", 0): {}}


def test_a_single_replica_is_not_asked() -> None:
    cluster = Answering([1], {1: 5}, [])
    assert asyncio.run(ask_replicas(cluster, ["t"])).lags == {("t", 0): {}}
    assert cluster.asked == []
