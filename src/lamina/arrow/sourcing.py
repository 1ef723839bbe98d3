"""Where the bytes of a range come from: files that its leader lends, or Fetch.

Owns the choice, made anew wherever a lease ends, and that what Fetch words (loss, an absent topic) is left to it. Must
not know what the bytes are read into.
"""

import logging
from collections.abc import Generator, Iterator
from dataclasses import replace

from lamina.arrow.connecting import open_cluster
from lamina.arrow.driving import LoopThread
from lamina.arrow.errors import ReadError
from lamina.arrow.leasing import lease_files
from lamina.arrow.prefetching import Chunk, Prefetch, RangeToFetch, ReadFiles
from lamina.arrow.properties import ClientProperties
from lamina.arrow.segment_files import NotSeen, lent_chunks
from lamina.errors import InconsistentTopicId, KafkaError, OffsetOutOfRange, UnknownTopicOrPartition
from lamina.peer.cluster import ClusterClient

logger = logging.getLogger(__name__)

_LOSS = (InconsistentTopicId, OffsetOutOfRange, UnknownTopicOrPartition)
"""What is asked for is not there: Fetch finds out what that means."""


def read_chunks(properties: ClientProperties, asked: RangeToFetch) -> Iterator[Chunk]:
    """Each good until the next is asked for. Raises `DataLoss`, `ReadError` or `KafkaError`."""
    if asked.start >= asked.end and not asked.goes_on:
        return
    with LoopThread() as loop:
        cluster = loop.run(_open(properties))
        try:
            at = asked.start
            if asked.read_files is not ReadFiles.NEVER:
                at = yield from _from_files(loop, cluster, properties, asked)
            if at < asked.end or asked.goes_on:
                yield from _fetched(loop, cluster, properties, replace(asked, start=at))
        finally:
            loop.run(cluster.__aexit__(None, None, None))


def _from_files(
    loop: LoopThread, cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch
) -> Generator[Chunk, None, int]:
    """Returns how far files were to be had."""
    at = asked.start
    while at < asked.end:
        try:
            leased = loop.run(lease_files(cluster, properties, asked, at))
        except _LOSS:
            return at
        except KafkaError as error:
            _do_without(asked, str(error))
            return at
        begun_at = at
        try:
            at = yield from lent_chunks(leased.files, asked, at, is_committed_only=properties.is_committed_only)
        except NotSeen as not_seen:
            _do_without(asked, str(not_seen))
            return at
        finally:
            loop.run(leased.give_back())
        if at == begun_at:
            return at
    return at


def _do_without(asked: RangeToFetch, reason: str) -> None:
    if asked.read_files is ReadFiles.REQUIRE:
        raise ReadError(
            f"the files of {asked.name} cannot be read: {reason}; with readFiles=auto they would be fetched"
        ) from None
    logger.debug("%s is fetched: %s", asked.name, reason)


def _fetched(
    loop: LoopThread, cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch
) -> Iterator[Chunk]:
    prefetch = Prefetch(cluster, properties, asked)
    loop.run(prefetch.__aenter__())
    try:
        while (chunk := loop.run(prefetch.next())) is not None:
            yield chunk
    finally:
        loop.run(prefetch.__aexit__())


async def _open(properties: ClientProperties) -> ClusterClient:
    return await open_cluster(properties).__aenter__()
