"""Two brokers in one process, on one loop, that ask each other: each has a log of its own of every partition, and the
metadata of both agree on who leads it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lamina.errors import NetworkError
from lamina.image.changes import register_broker
from lamina.image.image import Broker, Image
from lamina.peer.call import MessageCall
from lamina.settings.listeners import Listener
from lamina.wire.codec import SIZE_BYTES
from tests.broker.in_process import InProcessBroker, NoSocket, joined

FEW_PARTITIONS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}

Interference = Callable[[int, MessageCall], Any]
"""Sees each request to a broker: returns its response, raises, or returns ``None`` to let it through."""


class TwoBrokers:
    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.asked: list[tuple[int, MessageCall]] = []
        self.interfere: Interference = lambda broker_id, call: None
        self.brokers = {
            broker_id: InProcessBroker(
                directory / str(broker_id),
                FEW_PARTITIONS | {"node.id": str(broker_id)},
                loop=self.loop,
                ask_broker=self._ask,
            )
            for broker_id in (1, 2)
        }

    def __getitem__(self, broker_id: int) -> InProcessBroker:
        return self.brokers[broker_id]

    def create(self, topic: str, partitions: int = 1) -> None:
        """Before the brokers know each other: both get a replica of every partition."""
        for broker in self.brokers.values():
            broker.create(topic, partitions)

    def join(self) -> None:
        """Each broker sees the other."""
        for broker_id, broker in self.brokers.items():
            other = _broker(3 - broker_id)
            self._change(broker, lambda image, other=other: register_broker(image, other))  # type: ignore[misc]

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Both brokers learn of an election, before which others may have led."""
        for broker in self.brokers.values():
            epoch = broker.parts.metadata.image.partition(topic, index).leader_epoch + 2
            isr = (leader,) if leader >= 0 else (1,)
            broker.set_partition(topic, index, replicas=(1, 2), leader=leader, leader_epoch=epoch, isr=isr)
        self.settle()

    def settle(self) -> None:
        for broker in self.brokers.values():
            broker.settle()

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _ask(self, broker_id: int, call: MessageCall) -> Any:
        self.asked.append((broker_id, call))
        await asyncio.sleep(0)
        told = self.interfere(broker_id, call)
        if isinstance(told, Awaitable):
            told = await told
        if told is not None:
            return told
        if broker_id not in self.brokers:
            raise NetworkError(f"broker {broker_id} is away")
        version = call.versions[-1]
        frame = call.encode(version, 1, "broker")
        _, served = self.brokers[broker_id].parts.router.serve(NoSocket(), memoryview(frame)[SIZE_BYTES:])
        pieces = await served if isinstance(served, Awaitable) else served
        return call.decode(version, memoryview(joined(pieces))[SIZE_BYTES:])

    def _change(self, broker: InProcessBroker, change: Callable[[Image], Image]) -> None:
        self.loop.run_until_complete(broker.parts.metadata.change(change))

    def forget_listener(self, of: int, broker_id: int) -> None:
        """The metadata of a broker shows another one without a listener for clients."""

        def change(image: Image) -> Image:
            return register_broker(image, replace(image.brokers[broker_id], endpoints={}))

        self._change(self.brokers[of], change)


def _broker(broker_id: int) -> Broker:
    endpoint = Listener("PLAINTEXT", "PLAINTEXT", f"broker-{broker_id}.test", 9092 + broker_id)
    return Broker(broker_id, {"PLAINTEXT": endpoint})


def run(brokers: TwoBrokers, waiting: Awaitable[Any], seconds: float = 30) -> Any:
    return brokers.loop.run_until_complete(asyncio.wait_for(cast(Any, waiting), seconds))
