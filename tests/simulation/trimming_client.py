"""A client that deletes the oldest records of a partition, now and then all of them. Must not know brokers."""

from datetime import timedelta

from lamina.errors import KafkaError, OffsetOutOfRange, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.target import Leader
from tests.simulation.clients import SimulatedClient, Surroundings
from tests.simulation.judge import TopicPartition

_DELETE_RECORDS = 21


class Trimmer(SimulatedClient):
    def __init__(self, name: str, around: Surroundings, connector: Connector, key: TopicPartition) -> None:
        super().__init__(name, around, connector)
        self._key = key

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        try:
            first = (await self.cluster.list_offset(*self._key, EARLIEST)).offset
            end = (await self.cluster.list_offset(*self._key, LATEST)).offset
            await self._delete(end if self.rng.random() < 0.3 else self.rng.randint(min(first, end), end))
        except OffsetOutOfRange as error:
            # A new leader may not know yet how far the one before had committed.
            self.tell(f"delete records: {error}")
        except KafkaError as error:
            self.failed("delete records", error)
        return False

    async def _delete(self, offset: int) -> None:
        self.judge.deletes(self._key, offset)
        partition = {"partition_index": self._key[1], "offset": offset}
        call = MessageCall(
            _DELETE_RECORDS,
            range(2, 3),
            topics=[{"name": self._key[0], "partitions": [partition]}],
            timeout=timedelta(seconds=1),
        )
        response = await self.cluster.request(Leader(*self._key), call)
        told = response.topics[0].partitions[0]
        if told.error_code:
            raise error_from_code(told.error_code, "DeleteRecords")
        self.tell(f"deleted what is below {offset} of {self._key}, which starts at {told.low_watermark}")
