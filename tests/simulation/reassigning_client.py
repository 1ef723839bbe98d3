"""A client that gives partitions other replicas, or has it cancelled, again and again. Must not know brokers.

It remembers what it has asked for: in the end a partition has the replicas that it began with, or some that it wanted.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.target import AnyBroker, Controller
from tests.simulation.clients import SimulatedClient, Surroundings
from tests.simulation.judge import TopicPartition

_ALTER_REASSIGNMENTS = 45
_SLOWEST_S = 0.5
_FEWEST = 2
"""As many as ``min.insync.replicas``: of what is kept by one alone, a disk that is lost may be the only copy."""
_TO_BE_EXPECTED = frozenset(
    {
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    }
)
"""A broker is away, or what was to be cancelled is complete."""

Assigned = Callable[[], Mapping[TopicPartition, Sequence[int]]]
"""The replicas of every partition as they are stored now."""


class Reassigner(SimulatedClient):
    def __init__(
        self, name: str, around: Surroundings, connector: Connector, broker_ids: Sequence[int], assigned: Assigned
    ) -> None:
        super().__init__(name, around, connector)
        self._broker_ids = broker_ids
        self._assigned = assigned
        self._wanted: dict[TopicPartition, set[frozenset[int]]] = {}
        """What each partition may have in the end: a request that was not answered may be carried out much later."""

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        await asyncio.sleep(self.rng.uniform(0.0, _SLOWEST_S))
        assigned = self._assigned()
        if not assigned:
            return False
        keys = self.rng.sample(sorted(assigned), min(len(assigned), self.rng.choice((1, 1, 2, 4))))
        is_cancelling = self.rng.random() < 0.25
        wanted = {key: None if is_cancelling else self._drawn(assigned[key]) for key in keys}
        for key, replicas in wanted.items():
            possible = self._wanted.setdefault(key, {frozenset(assigned[key])})
            if replicas is not None:
                possible.add(frozenset(replicas))
        try:
            await self._reassign(wanted)
        except KafkaError as error:
            self.failed(f"reassign {wanted}", error)
        return False

    def _drawn(self, replicas: Sequence[int]) -> list[int]:
        """Often almost the same, or in another order."""
        count = self.rng.randint(_FEWEST, len(self._broker_ids))
        if self.rng.random() < 0.5:
            return self.rng.sample(self._broker_ids, count)
        kept = self.rng.sample(list(replicas), len(replicas) - 1)
        others = [one for one in self._broker_ids if one not in kept]
        return [*self.rng.sample(others, 1), *kept]

    async def _reassign(self, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        topics: dict[str, list[dict[str, object]]] = {}
        for (topic, index), replicas in wanted.items():
            topics.setdefault(topic, []).append({"partition_index": index, "replicas": replicas})
        call = MessageCall(
            _ALTER_REASSIGNMENTS,
            range(1, 2),
            timeout=timedelta(seconds=1),
            topics=[{"name": name, "partitions": partitions} for name, partitions in topics.items()],
        )
        target = self.rng.choice((AnyBroker(), Controller()))
        response = await self.cluster.request(target, call)
        if response.error_code:
            raise error_from_code(response.error_code, "AlterPartitionReassignments")
        told = {(topic.name, one.partition_index): one for topic in response.responses for one in topic.partitions}
        for key, replicas in wanted.items():
            code = told[key].error_code
            if code and code not in _TO_BE_EXPECTED:
                raise error_from_code(code, f"{key} to {replicas}")
            self.tell(f"{key} gets {replicas or 'what it had'}: {ErrorCode(code).name}")

    def check(self) -> None:
        """After all has healed and come to an end."""
        for key, replicas in self._assigned().items():
            possible = self._wanted.get(key)
            if possible is not None and frozenset(replicas) not in possible:
                known = sorted(sorted(one) for one in possible)
                raise self.judge.violated(f"{key} has the replicas {list(replicas)}, and {known} were wanted")
