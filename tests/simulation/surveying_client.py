"""A client that writes to a partition and asks again and again where it ends: never before what it was told. Must not
know brokers.
"""

from collections.abc import Callable

from lamina.errors import KafkaError
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import Connector
from lamina.peer.limits import Limits
from lamina.peer.listing import LATEST, list_one, listed, partition_listed
from lamina.peer.target import Leader
from lamina.wire.fetch_request import READ_UNCOMMITTED
from tests.simulation.clients import PRODUCE_TIMEOUT_MS, SimulatedClient, Surroundings
from tests.simulation.judge import TopicPartition

_EAGER = Limits(
    connect_timeout_ms=300, request_timeout_ms=600, api_timeout_ms=1600, retry_backoff_ms=8, retry_backoff_max_ms=30
)
"""A new leader's first answers are those that matter."""
_NO_EPOCH = -1

CommittedEnd = Callable[[TopicPartition, int], int]


class Surveyor(SimulatedClient):
    def __init__(
        self, name: str, around: Surroundings, connector: Connector, key: TopicPartition, committed_end: CommittedEnd
    ) -> None:
        """``committed_end`` is where that ends which was committed before a leader epoch."""
        super().__init__(name, around, connector)
        self.cluster = ClusterClient(around.bootstrap, connector, around.rng.random, _EAGER)
        self._key = key
        self._committed_end = committed_end
        self._epoch = _NO_EPOCH
        """The leader's, when it answered last."""

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        try:
            if self.rng.random() < 0.4:
                await self._produce()
            await (self._list_latest() if self.rng.random() < 0.7 else self._list_in_known_epoch())
        except KafkaError as error:
            self._epoch = _NO_EPOCH
            self.failed("survey", error)
        return False

    async def _produce(self) -> None:
        values = self.new_values(1)
        produced = await self.cluster.produce(*self._key, self.batch(values), timeout_ms=PRODUCE_TIMEOUT_MS)
        self.tell(f"produced {values} at {produced.base_offset} of {self._key}")
        self.judge.acknowledged(self._key, produced.base_offset, values)
        self.judge.saw_latest(self.name, self._key, produced.base_offset + 1)

    async def _list_latest(self) -> None:
        latest = await self.cluster.list_offset(*self._key, LATEST)
        self._told(latest.offset, latest.leader_epoch)

    async def _list_in_known_epoch(self) -> None:
        """As one whose metadata may be old: only a leader of that very epoch answers (R90)."""
        asked = self._epoch
        call = list_one(*self._key, asked, LATEST, READ_UNCOMMITTED)
        told = partition_listed(await self.cluster.request(Leader(*self._key), call))
        if told.error_code:
            self._epoch = _NO_EPOCH
            return
        latest = listed(told)
        if asked not in (_NO_EPOCH, latest.leader_epoch):
            raise self.judge.violated(
                f"{self.name} asked for {self._key} in epoch {asked}, and its leader answered in {latest.leader_epoch}"
            )
        self._told(latest.offset, latest.leader_epoch)

    def _told(self, offset: int, leader_epoch: int) -> None:
        self.tell(f"is told that {self._key} ends at {offset} in epoch {leader_epoch}")
        self._epoch = leader_epoch
        self.judge.saw_latest(self.name, self._key, offset)
        committed = self._committed_end(self._key, leader_epoch)
        if offset < committed:
            raise self.judge.violated(
                f"{self._key} ends at {offset} in epoch {leader_epoch}, and {committed} were committed before it"
            )
