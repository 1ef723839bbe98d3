"""A client that has preferred leaders elected, of all partitions or of one. Must not know brokers."""

from datetime import timedelta

from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.target import Controller
from tests.simulation.clients import SimulatedClient, Surroundings
from tests.simulation.judge import TopicPartition

_ELECT_LEADERS = 43
_PREFERRED = 0
_NOT_NOW = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


class Elector(SimulatedClient):
    def __init__(self, name: str, around: Surroundings, connector: Connector, key: TopicPartition) -> None:
        super().__init__(name, around, connector)
        self._key = key

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        wanted = self._key if self.rng.random() < 0.5 else None
        try:
            await self._elect(wanted)
        except KafkaError as error:
            self.failed("elect leaders", error)
        return False

    async def _elect(self, key: TopicPartition | None) -> None:
        named = None if key is None else [{"topic": key[0], "partitions": [key[1]]}]
        timeout = timedelta(seconds=1)
        call = MessageCall(
            _ELECT_LEADERS, range(2, 3), election_type=_PREFERRED, topic_partitions=named, timeout=timeout
        )
        response = await self.cluster.request(Controller(), call)
        if response.error_code:
            raise error_from_code(response.error_code, "ElectLeaders")
        for topic in response.replica_election_results:
            for told in topic.partition_result:
                if told.error_code in _NOT_NOW:
                    continue
                if told.error_code:
                    raise error_from_code(told.error_code, told.error_message or "")
                self.tell(f"had the preferred leader of {topic.topic}-{told.partition_id} elected")
