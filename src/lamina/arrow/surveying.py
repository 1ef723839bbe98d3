"""Samples of partitions taken from a cluster, and the ranges that are cut by them.

Owns how many samples a plan may take and how one is fetched. Must not know what the ranges are for.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from lamina.arrow.cutting import Bounds, OffsetRange, cut_all
from lamina.arrow.sampling import Piece, Sample, Survey
from lamina.errors import CorruptMessage, OffsetOutOfRange
from lamina.peer.cluster import ClusterClient
from lamina.records.batch import walk
from lamina.topic_partition import TopicPartition

_SAMPLE_BYTES = 64 * 1024
_MAX_SAMPLES = 2048
"""Over all partitions of a plan."""
_SAMPLES_EACH = range(4, 48)
_AT_ONCE = 16


async def cut_ranges(
    cluster: ClusterClient, ranges: Mapping[TopicPartition, OffsetRange], bounds: Bounds
) -> dict[TopicPartition, list[OffsetRange]]:
    """Ranges that are not empty, cut as the bounds ask; each stays whole where they ask for nothing."""
    if not bounds.are_given:
        return {where: [one] for where, one in ranges.items()}
    each = max(min(_MAX_SAMPLES // max(len(ranges), 1), _SAMPLES_EACH[-1]), _SAMPLES_EACH[0])
    turns = asyncio.Semaphore(_AT_ONCE)

    async def survey(where: TopicPartition, one: OffsetRange) -> list[Piece]:
        survey = Survey(one.start, one.end, each)
        async with turns:
            while (offset := survey.wanted()) is not None:
                survey.learn(await _sample(cluster, where, offset, one.end))
        return list(survey.pieces())

    surveyed = await asyncio.gather(*(survey(where, one) for where, one in ranges.items()))
    return cut_all(dict(zip(ranges, surveyed, strict=True)), bounds)


async def _sample(cluster: ClusterClient, where: TopicPartition, offset: int, end: int) -> Sample:
    """Empty up to the end where nothing comes."""
    next_offset, size_bytes, record_count = offset, 0.0, 0.0
    with suppress(OffsetOutOfRange, CorruptMessage):
        fetched = await cluster.fetch(*where, offset, max_bytes=_SAMPLE_BYTES, max_wait_ms=0)
        for _, header in walk(fetched.records):
            if header.base_offset >= end:
                break
            # The first batch may begin before the offset, the last end behind it: what is outside does not count.
            span = min(header.next_offset, end) - max(header.base_offset, offset)
            share = span / (header.next_offset - header.base_offset)
            size_bytes += header.size_bytes * share
            record_count += header.record_count * share
            next_offset = min(header.next_offset, end)
    if next_offset == offset:
        return Sample(offset, end, 0, 0)
    return Sample(offset, next_offset, round(size_bytes), round(record_count))
