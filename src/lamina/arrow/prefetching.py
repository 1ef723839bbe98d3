"""One range of a partition as raw batches, fetched ahead of whoever reads them.

Owns the order of the chunks, the bound on what is held (one that waits, one that is on its way), and what is done when
records are not there any more: `DataLoss`, or, where loss is tolerated, on to the next that are. Leaders that move and
brokers that die are the client's to find again. Must not know what the records are read into.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from lamina.arrow.cluster import describe_known
from lamina.arrow.losses import Loss, fail, warn
from lamina.arrow.properties import ClientProperties
from lamina.errors import (
    CorruptMessage,
    InconsistentTopicId,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from lamina.peer.cluster import ClusterClient
from lamina.peer.fetching import Fetched
from lamina.peer.listing import EARLIEST, EARLIEST_LOCAL
from lamina.records.batch import walk

DEFAULT_POLL_TIMEOUT_MS = 120_000


class ReadFiles(StrEnum):
    """Whether segment files of the leader are read in place of Fetch."""

    AUTO = "auto"
    """Where it lends them and this machine sees them."""
    NEVER = "never"
    REQUIRE = "require"
    """It is an error where that is not so. What the disk does not have yet, on another machine, is fetched."""


@dataclass(frozen=True, slots=True)
class RangeToFetch:
    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID | None = None
    """Where it is known, a topic of another id is not read."""
    tolerates_loss: bool = False
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    """How long the partition may have nothing to give before its end."""
    read_files: ReadFiles = ReadFiles.NEVER
    goes_on: bool = False
    """Beyond ``end``: to where the partition ends at first, and on from there while records are missing.

    Compaction takes away a record only where a later one of its key is in the log. So whoever has read up to an offset
    looks how far the log reaches then, and has come by every key once all that lies between was there. Where some of
    that is gone, too, its later records are looked for in the same way. Nobody compacts what has only just come, so
    two looks do, however fast a producer is.
    """

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class Chunk(NamedTuple):
    """Whole batches, and perhaps a part of one more at the end."""

    start: int
    """Records before it, in a batch that begins earlier, were not asked for."""
    records: memoryview
    aborted: Sequence[tuple[int, int]] | None
    """(producer id, first offset) of the aborted transactions in it; None where all records are wanted."""
    name: str
    """What people know it by that the batches come from."""
    position: int = 0
    """Where they begin in that."""


class Prefetch:
    """To be used as ``async with Prefetch(…) as chunks: await chunks.next()``, on one event loop."""

    def __init__(self, cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch) -> None:
        self._cluster = cluster
        self._properties = properties
        self._asked = asked
        self._ready: asyncio.Queue[Chunk | BaseException | None] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Prefetch":
        self._task = asyncio.create_task(self._fetch_ahead())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def next(self) -> Chunk | None:
        """None at the end of the range. Raises `DataLoss` or `KafkaError`."""
        chunk = await self._ready.get()
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    async def _fetch_ahead(self) -> None:
        try:
            async for chunk in fetch_range(self._cluster, self._properties, self._asked):
                await self._ready.put(chunk)
            await self._ready.put(None)
        except Exception as error:
            await self._ready.put(error)


async def fetch_range(
    cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch
) -> AsyncIterator[Chunk]:
    """The chunks of a range, each fetched when the one before it was taken."""
    loop = asyncio.get_running_loop()
    at, is_local, heard_at = asked.start, False, loop.time()
    end, has_looked, is_gone = asked.end, False, False
    try:
        await _check_topic_id(cluster, properties, asked)
        while at < end or asked.goes_on:
            wait_ms = properties.fetch_max_wait_ms if at < end else 0
            try:
                fetched = await _fetch(cluster, properties, asked, at, wait_ms)
            except OffsetOutOfRange:
                await _check_topic_id(cluster, properties, asked)
                found = await _after_loss(cluster, asked, at)
                if found is None:
                    return
                at = found
                continue
            next_offset = _next_offset(fetched, asked, at)
            bound = fetched.last_stable_offset if properties.is_committed_only else fetched.high_watermark
            if asked.goes_on and not has_looked:
                end, has_looked = max(end, bound), True
            is_gone |= _are_some_gone(fetched, at)
            is_all = next_offset >= (end if asked.goes_on and not is_gone else max(end, bound))
            if asked.goes_on and next_offset >= end:
                end, is_gone = max(end, bound), False
            if next_offset > at:
                begun_at, at, is_local, heard_at = at, next_offset, False, loop.time()
                aborted = [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions]
                yield Chunk(begun_at, fetched.records, aborted if properties.is_committed_only else None, asked.name)
                if is_all:
                    return
                continue
            if is_all:
                return
            if bound >= end:
                if is_local:
                    return  # The leader has nothing up to the end: it was compacted away.
                is_local = await _is_local(cluster, asked, at)
            if (loop.time() - heard_at) * 1000 >= asked.poll_timeout_ms:
                if bound >= end:
                    raise RequestTimedOut(
                        f"{asked.name} gave nothing at offset {at} for {asked.poll_timeout_ms} ms, though it ends at "
                        f"offset {bound}; where its records are in tiered storage, allow more time"
                    )
                _lost(asked, f"ends at offset {bound}, and {end} was asked for", bound)
                return
            if wait_ms == 0:
                await asyncio.sleep(properties.limits.retry_backoff_ms / 1000)
    except UnknownTopicOrPartition:
        _lost(asked, "does not exist any more", at)
    except InconsistentTopicId:
        _lost(asked, "was deleted and made again (its topic id is another one)", at)


async def _fetch(
    cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch, at: int, wait_ms: int
) -> Fetched:
    return await cluster.fetch(
        asked.topic,
        asked.partition,
        at,
        max_bytes=properties.fetch_max_bytes,
        max_wait_ms=wait_ms,
        min_bytes=properties.fetch_min_bytes,
        isolation_level=properties.isolation_level,
        topic_id=asked.topic_id,
    )


def _lost(asked: RangeToFetch, reason: str, start: int, end: int | None = None) -> None:
    loss = Loss(asked.name, f"{asked.name} {reason}", start, asked.end if end is None else end)
    if asked.tolerates_loss:
        warn(loss)
    else:
        fail(loss, "; records may have been deleted by retention, or the topic was deleted")


def _are_some_gone(fetched: Fetched, at: int) -> bool:
    """Whether offsets from ``at`` on have no record any more."""
    for _, header in walk(fetched.records):
        if header.base_offset > at or header.record_count <= header.last_offset_delta:
            return True
        at = header.next_offset
    return False


async def _check_topic_id(cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch) -> None:
    if asked.topic_id is None:
        return
    known = {(asked.topic, asked.partition): asked.topic_id}
    topic = (await describe_known(cluster, [asked.topic], known, properties.limits)).get(asked.topic)
    if topic is None:
        raise UnknownTopicOrPartition(f"topic {asked.topic} does not exist")
    if topic.topic_id != asked.topic_id:
        raise InconsistentTopicId(f"topic {asked.topic} was deleted and made again")


async def _is_local(cluster: ClusterClient, asked: RangeToFetch, at: int) -> bool:
    """Whether an empty response at an offset means that nothing is there, and not that tiered storage is slow.

    False also where the brokers are too old to say.
    """
    try:
        local_start = (await cluster.list_offset(asked.topic, asked.partition, EARLIEST_LOCAL)).offset
    except UnsupportedVersion:
        return False
    return 0 <= local_start <= at


async def _after_loss(cluster: ClusterClient, asked: RangeToFetch, at: int) -> int | None:
    """Where to go on, if anywhere; records before the log start, or beyond the end, are lost."""
    log_start = (await cluster.list_offset(asked.topic, asked.partition, EARLIEST)).offset
    if log_start > at:
        until = log_start if asked.goes_on else min(log_start, asked.end)
        _lost(asked, f"begins at offset {log_start}, and {at} was asked for", at, until)
        return log_start
    _lost(asked, f"ends before offset {at}, which was asked for", at)
    return None


def _next_offset(fetched: Fetched, asked: RangeToFetch, at: int) -> int:
    try:
        for _, header in walk(fetched.records):
            at = header.next_offset
    except CorruptMessage as error:
        raise CorruptMessage(f"{asked.name}: {error}") from None
    return at
