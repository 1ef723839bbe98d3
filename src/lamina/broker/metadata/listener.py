"""Who acts on a change of the metadata beside the publisher, and what he is told of it.

Owns the contract. Must not know who listens.
"""

from lamina.broker.partitions.partition import Partition
from lamina.image.diff import AccessRules, Changes
from lamina.settings.values import BrokerSettings


class MetadataListener:
    """Is told when the metadata changes, and acts on it; each method is a turn of the loop."""

    def rules_changed(self, changed: AccessRules, rules: AccessRules) -> None:
        """Other access rules hold from now on: those of the patterns that changed, and all of them.

        They may be told before anything else is done about the change that brought them.
        """

    def settings_changed(self, settings: BrokerSettings) -> None:
        """The broker's settings are others from now on."""

    def partition_led(self, partition: Partition) -> None:
        """This broker leads the partition from now on, or leads it in another epoch."""

    def partition_resigned(self, partition: Partition) -> None:
        """This broker does not lead the partition any more."""

    def partition_followed(self, partition: Partition) -> None:
        """This broker follows another one from now on, or in another epoch, or nobody any more."""

    def partition_configured(self, partition: Partition) -> None:
        """The topic's settings are others from now on."""

    def partition_removed(self, topic: str, index: int) -> None:
        """The partition is out of service for good."""

    def topics_gone(self, topics: frozenset[str]) -> None:
        """Clients know these topics no more. Said before a new one is led that has the name of one of them."""

    def image_changed(self, changes: Changes) -> None:
        """Everything else has been done."""
