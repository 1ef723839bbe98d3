"""A broker that shares a topic with others, which tests play."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from lamina.broker.partitions.leader import InSyncProposal
from lamina.broker.partitions.partition import Partition
from lamina.image.changes import register_broker, remove_broker, set_partitions
from lamina.image.image import Broker, Image
from lamina.settings.listeners import Listener
from tests.broker.in_process import InProcessBroker, batch_of

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
ME, OTHER, THIRD = 1, 2, 3
BROKER_EPOCHS = {OTHER: 20, THIRD: 30}
FOR_EVER_MS = 2**31 - 1


class ReplicatedBroker(InProcessBroker):
    """Broker 1 with a topic ``t`` of one partition, whose other replicas are brokers 2 and 3."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None, **configs: str) -> None:
        super().__init__(directory, settings or {})
        self.proposals: list[InSyncProposal] = []
        self.clock.monotonic_ms = 1_000_000
        self.create("t", partitions=1, **configs)
        cluster = self.parts.partitions.cluster
        cluster.change_in_sync = lambda _, proposal: self.proposals.append(proposal)
        self.change(lambda image: self._with_others(image))

    def _with_others(self, image: Image) -> Image:
        for broker_id, epoch in BROKER_EPOCHS.items():
            endpoint = Listener("PLAINTEXT", "PLAINTEXT", f"broker-{broker_id}.test", 9092)
            image = register_broker(image, Broker(broker_id, {"PLAINTEXT": endpoint}, f"rack-{broker_id}", epoch))
        return image

    def change(self, change: Callable[[Image], Image]) -> None:
        self.parts.loop.run_until_complete(self.parts.metadata.change(change))

    def place(self, leader: int = ME, isr: tuple[int, ...] = (ME, OTHER), *, new_epoch: bool = True) -> None:
        """Have ``leader`` lead three replicas, of which ``isr`` are in sync."""

        def changed(image: Image) -> Image:
            state = image.topics["t"].partitions[0]
            epoch = state.leader_epoch + new_epoch
            new = replace(state, replicas=(ME, OTHER, THIRD), leader=leader, isr=isr, leader_epoch=epoch)
            return set_partitions(image, {("t", 0): new})

        self.change(changed)

    def lose(self, broker_id: int) -> None:
        self.change(lambda image: remove_broker(image, broker_id))

    @property
    def partition(self) -> Partition:
        return self.parts.partitions.get("t", 0)

    @property
    def topic_id(self) -> UUID:
        return self.partition.topic_id

    @property
    def epoch(self) -> int:
        return self.parts.metadata.image.topics["t"].partitions[0].leader_epoch

    # Requests

    def begin_produce(
        self,
        count: int = 1,
        *,
        acks: int = -1,
        timeout: int = FOR_EVER_MS,
        version: int = 12,
        others: tuple[str, int] | None = None,
    ) -> Any:
        """``others`` are a topic and how many of its partitions are written to after ``t``."""
        topics = [
            {"name": name, "partition_data": [{"index": index, "records": batch_of(self, count)} for index in range(n)]}
            for name, n in (("t", 1), *([others] if others else ()))
        ]
        return self.begin(PRODUCE, version, acks=acks, timeout=timeout, topic_data=topics)

    def produced(self, begun: "asyncio.Task[Any]") -> Any:
        return self.finish(begun).responses[0].partition_responses[0]

    def begin_fetch(
        self,
        offset: int,
        *,
        replica_id: int = -1,
        broker_epoch: int | None = None,
        leader_epoch: int = -1,
        last_epoch: int = -1,
        log_start: int = 0,
        version: int = 17,
        max_wait: int = 0,
        rack: str = "",
        topic_id: UUID | None = None,
        isolation: int = 0,
    ) -> "asyncio.Task[Any]":
        asked = {
            "partition": 0,
            "current_leader_epoch": leader_epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": last_epoch,
            "log_start_offset": log_start,
            "partition_max_bytes": 1 << 20,
        }
        epoch = BROKER_EPOCHS.get(replica_id, -1) if broker_epoch is None else broker_epoch
        return self.begin(
            FETCH,
            version,
            replica_id=replica_id,
            replica_state={"replica_id": replica_id, "replica_epoch": epoch},
            max_wait=max_wait,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[{"topic": "t", "topic_id": topic_id or self.topic_id, "partitions": [asked]}],
            rack_id=rack,
        )

    def begin_fetch_many(self, topic: str, indexes: Iterable[int], offset: int) -> "asyncio.Task[Any]":
        """A follower's fetch of many partitions, which are answered at once."""
        partitions = [
            {
                "partition": index,
                "current_leader_epoch": -1,
                "fetch_offset": offset,
                "last_fetched_epoch": -1,
                "partition_max_bytes": 1 << 20,
            }
            for index in indexes
        ]
        return self.begin(
            FETCH,
            17,
            replica_state={"replica_id": OTHER, "replica_epoch": BROKER_EPOCHS[OTHER]},
            max_wait=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[{"topic_id": self.parts.partitions.get(topic, 0).topic_id, "partitions": partitions}],
        )

    def fetched(self, begun: "asyncio.Task[Any]") -> Any:
        return self.finish(begun).responses[0].partitions[0]

    def fetch(self, offset: int, **asked: Any) -> Any:  # type: ignore[override]
        return self.fetched(self.begin_fetch(offset, **asked))

    def list_offset(self, timestamp: int, *, replica_id: int = -1, version: int = 8, leader_epoch: int = -1) -> Any:
        asked = {"partition_index": 0, "current_leader_epoch": leader_epoch, "timestamp": timestamp}
        topics = [{"name": "t", "partitions": [asked]}]
        response = self.ask(LIST_OFFSETS, version, replica_id=replica_id, topics=topics)
        return response.topics[0].partitions[0]

    def settled(self, begun: "asyncio.Task[Any]") -> bool:
        """Whether it is answered, once all who can do something have done it."""
        for _ in range(10):
            self.turn()
        return begun.done()
