"""What a plan asks a cluster: topics, offsets, and how records lie between two offsets.

Owns the connections of a driver's reader, on a thread of their own, and how often topics are asked about. Must not know
what follows from the answers.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from lamina.arrow.cluster import (
    KnownIds,
    Position,
    Topic,
    contradictions,
    describe_known,
    find_ends,
    find_offsets,
    find_starts,
)
from lamina.arrow.connecting import open_cluster
from lamina.arrow.counting import Allowance, Reached, reach
from lamina.arrow.cutting import Bounds, OffsetRange
from lamina.arrow.driving import LoopThread
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.surveying import cut_ranges
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.peer.cluster import ClusterClient
from lamina.topic_partition import TopicPartition
from lamina.wire.fetch_request import READ_UNCOMMITTED
from pyspark_lamina.group_offsets import commit_offsets
from pyspark_lamina.offsets import Offsets
from pyspark_lamina.options import SourceOptions
from pyspark_lamina.trigger_limits import limit_content

T = TypeVar("T")

NOTHING_KNOWN: KnownIds = {}

_COUNTED_AT_ONCE = 4
_COUNTED_BYTES = 1024 * 1024
"""Of a response whose batches are only looked at."""


class Lookup:
    """To be used as ``with Lookup(options) as lookup``, or closed in the end. Its methods wait for the answers."""

    def __init__(self, options: SourceOptions, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._options = options
        self._clocks = clocks
        self._topics: dict[str, Topic] = {}
        self._topics_until_ms = clocks.monotonic_ms()
        self._believed: set[tuple[TopicPartition, UUID | None]] = set()
        """What is not as it was known to be, though it was asked for again."""
        self._loop = LoopThread().__enter__()
        self._cluster: ClusterClient = self._loop.run(self._open())

    def __enter__(self) -> "Lookup":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._run(self._cluster.__aexit__(None, None, None))
        self._loop.close()

    def topics(self, known: KnownIds = NOTHING_KNOWN) -> dict[str, Topic]:
        """Of those that the query names; all where it has a pattern. What contradicts what is known is asked again."""
        now_ms = self._clocks.monotonic_ms()
        if now_ms >= self._topics_until_ms:
            doubted = {where: topic_id for where, topic_id in known.items() if (where, topic_id) not in self._believed}
            selection, limits = self._options.selection, self._options.client.limits
            self._topics = self._run(describe_known(self._cluster, selection.names, doubted, limits))
            self._believed = set(contradictions(self._topics, known).items())
            self._topics_until_ms = now_ms + self._options.metadata_ttl_ms
        return self._topics

    @property
    def topics_told(self) -> Mapping[str, Topic]:
        """What `topics` gave last."""
        return self._topics

    def offsets(self, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, int]:
        isolation_level = self._options.client.isolation_level
        return self._run(find_offsets(self._cluster, self._topics, positions, isolation_level))

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._run(find_starts(self._cluster, self._topics, partitions))

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Of what the query may read: of committed records, the last stable offset."""
        return self._run(find_ends(self._cluster, self._topics, partitions, self._options.client.isolation_level))

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._run(find_ends(self._cluster, self._topics, partitions, READ_UNCOMMITTED))

    def cut(
        self, ranges: Mapping[TopicPartition, OffsetRange], bounds: Bounds
    ) -> dict[TopicPartition, list[OffsetRange]]:
        return self._run(cut_ranges(self._cluster, ranges, bounds))

    def limit_content(
        self, starts: Offsets, ends: Offsets, allowance: Allowance, turn: int
    ) -> dict[TopicPartition, int]:
        return self._run(self._limit_content(starts, ends, allowance, turn))

    def commit(self, group: str, offsets: Offsets) -> None:
        self._run(commit_offsets(self._cluster, group, offsets))

    def rest(self, milliseconds: int) -> None:
        self._run(asyncio.sleep(milliseconds / 1000))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    async def _open(self) -> ClusterClient:
        return await open_cluster(self._options.client).__aenter__()

    async def _limit_content(
        self, starts: Offsets, ends: Offsets, allowance: Allowance, turn: int
    ) -> dict[TopicPartition, int]:
        turns = asyncio.Semaphore(_COUNTED_AT_ONCE)
        client = replace(
            self._options.client, fetch_max_bytes=min(_COUNTED_BYTES, self._options.client.fetch_max_bytes)
        )

        async def count(where: TopicPartition, one: OffsetRange, share: Allowance, must_move: bool) -> Reached:
            asked = RangeToFetch(*where, one.start, one.end, tolerates_loss=not self._options.fails_on_data_loss)
            async with turns:
                return await reach(self._cluster, client, asked, share, must_move=must_move)

        return await limit_content(starts, ends, allowance, turn, count)
