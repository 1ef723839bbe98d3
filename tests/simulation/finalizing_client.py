"""A client that finalizes the level of a feature, as soon as all brokers support it. Must not know brokers."""

import asyncio
from datetime import timedelta

from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.target import AnyBroker, Controller
from tests.simulation.clients import SimulatedClient, Surroundings

_UPDATE_FEATURES = 57
_UPGRADE = 1
_SLOWEST_S = 0.3


class Finalizer(SimulatedClient):
    def __init__(self, name: str, around: Surroundings, connector: Connector, feature: str, level: int) -> None:
        super().__init__(name, around, connector)
        self._feature = feature
        self._level = level

    async def step(self) -> bool:
        """Until it is done, also when faults are over."""
        await asyncio.sleep(self.rng.uniform(0.0, _SLOWEST_S))
        try:
            return await self._finalize()
        except KafkaError as error:
            self.failed("finalize", error)
        return False

    async def _finalize(self) -> bool:
        update = {"feature": self._feature, "max_version_level": self._level, "upgrade_type": _UPGRADE}
        call = MessageCall(_UPDATE_FEATURES, range(1, 2), timeout=timedelta(seconds=1), feature_updates=[update])
        response = await self.cluster.request(self.rng.choice((AnyBroker(), Controller())), call)
        code = response.error_code
        if code == ErrorCode.INVALID_UPDATE_VERSION:
            self.tell(f"is refused: {response.error_message}")
            return False
        if code:
            raise error_from_code(code, response.error_message or "UpdateFeatures")
        self.tell(f"finalized {self._feature} at level {self._level}")
        return True
