"""A client that moves partitions between the log directories of brokers, and back. Must not know brokers."""

import asyncio
from collections.abc import Sequence

from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.target import Broker
from tests.simulation.clients import SimulatedClient, Surroundings
from tests.simulation.judge import TopicPartition

_ALTER_REPLICA_LOG_DIRS = 34
_SLOWEST_S = 0.2
_TO_BE_EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Others keep it, or one of the directories is offline."""


class Mover(SimulatedClient):
    def __init__(
        self,
        name: str,
        around: Surroundings,
        connector: Connector,
        broker_ids: Sequence[int],
        paths: Sequence[str],
        keys: Sequence[TopicPartition],
    ) -> None:
        super().__init__(name, around, connector)
        self._broker_ids = broker_ids
        self._paths = paths
        self._keys = keys

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        await asyncio.sleep(self.rng.uniform(0.0, _SLOWEST_S))
        broker_id, path, key = self.rng.choice(self._broker_ids), self.rng.choice(self._paths), self._drawn()
        try:
            await self._move(broker_id, path, key)
        except KafkaError as error:
            self.failed(f"move {key} of broker {broker_id} to {path}", error)
        return False

    def _drawn(self) -> TopicPartition:
        return self.rng.choice([*self._keys, ("__consumer_offsets", 0), ("__transaction_state", 0)])

    async def _move(self, broker_id: int, path: str, key: TopicPartition) -> None:
        topics = [{"name": key[0], "partitions": [key[1]]}]
        call = MessageCall(_ALTER_REPLICA_LOG_DIRS, range(2, 3), dirs=[{"path": path, "topics": topics}])
        response = await self.cluster.send_once(Broker(broker_id), call)
        code = response.results[0].partitions[0].error_code
        if code and code not in _TO_BE_EXPECTED:
            raise error_from_code(code, f"{key} to {path}")
        self.tell(f"{key[0]}-{key[1]} of broker {broker_id} goes to {path}: {ErrorCode(code).name}")
