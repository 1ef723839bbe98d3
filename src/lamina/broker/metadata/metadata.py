"""The metadata of the cluster as this broker knows it, and the one call that changes it.

Owns what handlers see: the image that clients are told, the settings that follow from it, and ``change``. Who decides
is the decider's business: this broker alone, or the controller of a cluster. Deciding and following never call each
other back. Must not know any API.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from lamina.broker.metadata.key_material import KeyMaterial
from lamina.broker.metadata.publisher import Publisher
from lamina.controller.election import ElectionFacts
from lamina.image.image import Image
from lamina.settings.log_config import LogConfig
from lamina.settings.values import BrokerSettings

Change = Callable[[Image], Image | Awaitable[Image]]


class Decider(Protocol):
    @property
    def decided(self) -> Image:
        """The metadata as it is stored; the publisher's image follows once this broker serves what is new in it."""

    @property
    def facts(self) -> ElectionFacts:
        """What else a change has to know that elects leaders."""

    async def change(self, change: Change) -> Image:
        """Make a change durable, and wait until this broker serves what follows from it. Returns the image after it.

        ``change`` sees the image as it is when its turn comes, and may raise the error to answer. One that takes long
        may await: no other change comes between. What has begun is finished, even if whoever asked for it goes away
        meanwhile. Raises NOT_CONTROLLER where another broker decides.
        """

    async def unregister_broker(self, broker_id: int) -> None:
        """Take a broker out of the cluster for good. Raises BROKER_ID_NOT_REGISTERED where nobody knows of it."""

    async def wait_until(self, holds: Callable[[Image], bool]) -> None:
        """Until what this broker serves is so. To be asked for what follows from a change that was made."""


class Metadata:
    def __init__(self, node_id: int, publisher: Publisher, decider: Decider) -> None:
        self.node_id = node_id
        self._publisher = publisher
        self._decider = decider
        self.key_material = KeyMaterial()

    @property
    def image(self) -> Image:
        """What clients are told."""
        return self._publisher.image

    @property
    def decided(self) -> Image:
        return self._decider.decided

    @property
    def facts(self) -> ElectionFacts:
        """What a change has to know that elects leaders, while it is made."""
        return self._decider.facts

    @property
    def settings(self) -> BrokerSettings:
        return self._publisher.settings

    def config_of(self, topic: str) -> LogConfig:
        return self._publisher.config_of(self.decided, topic)

    async def change(self, change: Change) -> Image:
        return await self._decider.change(change)

    async def unregister_broker(self, broker_id: int) -> None:
        await self._decider.unregister_broker(broker_id)

    async def wait_until(self, holds: Callable[[Image], bool]) -> None:
        await self._decider.wait_until(holds)
