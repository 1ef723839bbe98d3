"""Topics and records for the tests of the commands that send and read them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from lamina.client.cluster import Cluster, answer_of
from tests.cli.running import Lamina, Outcome


@dataclass(frozen=True, slots=True)
class Records:
    """``produce`` and ``consume`` on one cluster."""

    lamina: Lamina
    address: str
    directory: Path

    def make(self, topic: str, partitions: int = 1, **config: str) -> str:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        admin = self.admin()
        answer_of(admin.create_topics([NewTopic(topic, partitions, config=settings)])[topic])
        return topic

    def produce(self, topic: str, data: bytes, *options: str) -> Outcome:
        file = self.directory / "input"
        file.write_bytes(data)
        return self.lamina("produce", topic, "--file", file, *options, "--bootstrap-server", self.address)

    def consume(self, topic: str, *options: str) -> Outcome:
        return self.lamina("consume", topic, *options, "--bootstrap-server", self.address)

    def rows(self, topic: str, *options: str) -> list[dict[str, Any]]:
        outcome = self.consume(topic, "--json", *options)
        assert outcome.status == 0, outcome.err
        return outcome.objects

    def admin(self) -> AdminClient:
        """To be held until it has answered: what it is asked dies with it."""
        return Cluster(self.address).admin()

    def end_offset(self, topic: str, partition: int = 0) -> int:
        asked = {TopicPartition(topic, partition): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        admin = self.admin()
        return next(int(answer_of(future).offset) for future in admin.list_offsets(asked).values())

    def topics(self) -> set[str]:
        return set(self.admin().list_topics(timeout=10).topics)
