"""A broker without sockets whose cleaner is run by hand."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.partitions.partition import Partition
from lamina.records.record import Record, build_batch
from tests.broker.cleaner.engines import JobEngine
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker
from tests.log.building import records_of

T = TypeVar("T")


class CleaningBroker(InProcessBroker):
    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings)
        self.engine = JobEngine()
        self.cleaner.engine = self.engine

    @property
    def cleaner(self) -> Cleaner:
        return self.parts.cleaner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def clean(self) -> bool:
        """One round and all passes that it begins. Returns whether anything was cleaned."""

        async def round_and_passes() -> bool:
            return any(await asyncio.gather(*await self.cleaner.begin_round()))

        return self.run(round_and_passes())

    def compacted(self, name: str = "t", segments: int = 3, policy: str = "compact", **configs: str) -> Partition:
        """A topic with so many closed segments of two records each, keys ``a`` and ``b``, and one record more."""
        self.create(name, 1, cleanup_policy=policy, **configs)
        for number in range(segments):
            self.write(name, b"a=%d" % number, b"b=%d" % number)
            self.roll(name)
        self.write(name, b"c=last")
        return self.partition(name)

    def partition(self, name: str) -> Partition:
        return self.parts.partitions.get(name, 0)

    def roll(self, name: str) -> None:
        self.partition(name).log.roll(self.parts.clocks.now_ms())

    def write(self, name: str, *texts: bytes, timestamp_ms: int | None = None) -> None:
        """One batch for each record."""
        for text in texts:
            key, equals, value = text.partition(b"=")
            stamp = self.parts.clocks.now_ms() if timestamp_ms is None else timestamp_ms
            batch = bytes(build_batch([Record(0, stamp, key, value if equals else None)]))
            data = {"index": 0, "records": batch}
            answer = self.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": name, "partition_data": [data]}])
            assert answer.responses[0].partition_responses[0].error_code == 0

    def texts(self, name: str = "t") -> list[bytes]:
        log = self.partition(name).log
        return [(one.key or b"") + (b"" if one.value is None else b"=" + one.value) for one in records_of(log)]

    def checkpoint(self, name: str = "t") -> int | None:
        return self.parts.directories[0].offset_checkpoints.cleaner_offsets.get((name, 0))

    def folders(self, name: str = "t") -> list[str]:
        return [found for found in os.listdir(self.partition(name).log.path) if found.startswith(".lamina-pass-")]
