"""`read`: a whole topic, or a part of it, as a pyarrow RecordBatchReader.

Owns the words in which people name where to begin and end, and that partitions come one after the other, each in the
order of its offsets. Must not know how a range is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from lamina.arrow.cluster import AtTime, Position, Topic, describe_topics, find_offsets, find_starts
from lamina.arrow.connecting import open_cluster
from lamina.arrow.driving import LoopThread
from lamina.arrow.errors import DataLoss, ReadError
from lamina.arrow.losses import warn_of_nothing
from lamina.arrow.prefetching import RangeToFetch, ReadFiles
from lamina.arrow.properties import BOOTSTRAP_SERVERS, ClientProperties, parse_properties
from lamina.arrow.reading import DEFAULT_BATCH_BYTES, read_range, schema_of
from lamina.peer.listing import EARLIEST, LATEST

DEFAULT_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

Place = str | int | datetime
"""``earliest``, ``latest``, an offset, or the first record as young as a time."""

_WORDS = {"earliest": EARLIEST, "latest": LATEST}


def read(
    topic: str,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    start: Place | Mapping[int, Place] = "earliest",
    end: Place | Mapping[int, Place] = "latest",
    *,
    bootstrap_servers: str = "localhost:9092",
    partitions: Sequence[int] | None = None,
    properties: Mapping[str, str] | None = None,
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
    read_files: str = ReadFiles.AUTO,
) -> pa.RecordBatchReader:
    """The records of ``topic`` from ``start`` up to, and without, ``end``: places for all partitions, or by partition.

    Partitions that a mapping does not name begin at the earliest and end at the latest offset; the end is fixed when
    this is called. ``read_files`` says whether a broker's segment files are read in place of Fetch: ``auto`` where it
    lends them and this machine sees them, ``never``, or ``require``. ``properties`` are Kafka's,
    for instance ``{"isolation.level": "read_committed"}``. Nothing is read before the reader is; what fails then raises
    there. Raises `ReadError`, or `lamina.errors.KafkaError`.
    """
    if not isinstance(topic, str):
        raise ReadError(f"topic: {topic!r} is not one name")
    if isinstance(columns, str):
        raise ReadError(f"columns: {columns!r} is not a list of names")
    client = parse_properties({**(properties or {}), BOOTSTRAP_SERVERS: bootstrap_servers})
    schema = schema_of(columns)
    files = _read_files(read_files)
    with LoopThread() as loop:
        ranges = loop.run(_ranges(client, topic, partitions, start, end))
    batches = (
        batch
        for asked in ranges
        for batch in read_range(client, replace(asked, read_files=files), columns, max_batch_bytes)
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _read_files(given: str) -> ReadFiles:
    try:
        return ReadFiles(given)
    except ValueError:
        raise ReadError(f"read_files: {given!r} is none of {', '.join(ReadFiles)}") from None


async def _ranges(
    properties: ClientProperties,
    name: str,
    partitions: Sequence[int] | None,
    start: Place | Mapping[int, Place],
    end: Place | Mapping[int, Place],
) -> list[RangeToFetch]:
    async with open_cluster(properties) as cluster:
        topics = await describe_topics(cluster, [name])
        if name not in topics:
            raise ReadError(f"there is no topic {name!r}")
        wanted = _partitions(topics[name], partitions, start, end)
        find = partial(find_offsets, cluster, topics, isolation_level=properties.isolation_level)
        starts = await find({(name, one): _position(start, one, EARLIEST) for one in wanted})
        ends = await find({(name, one): _position(end, one, LATEST) for one in wanted})
        log_starts = await find_starts(cluster, topics, starts)
    for where, offset in starts.items():
        if offset < log_starts[where] and ends[where] > offset:
            raise DataLoss(
                f"data loss: {name}-{where[1]} begins at offset {log_starts[where]}, and {offset} was asked for"
            )
    warn_of_nothing(starts, ends)
    topic_id = topics[name].topic_id
    return [RangeToFetch(name, one, starts[name, one], ends[name, one], topic_id) for one in wanted]


def _partitions(topic: Topic, given: Sequence[int] | None, *places: Place | Mapping[int, Place]) -> list[int]:
    wanted = list(topic.leaders) if given is None else list(given)
    named = [one for place in places if isinstance(place, Mapping) for one in place]
    for one in (*wanted, *named):
        if one not in topic.leaders:
            raise ReadError(f"topic {topic.name!r} has no partition {one}; it has {len(topic.leaders)}, counted from 0")
    return wanted


def _position(given: Place | Mapping[int, Place], partition: int, otherwise: int) -> Position:
    place = given.get(partition, otherwise) if isinstance(given, Mapping) else given
    if isinstance(place, datetime):
        return AtTime(round(place.timestamp() * 1000), or_latest=True)
    if isinstance(place, str):
        if place not in _WORDS:
            raise ReadError(f"{place!r} is neither 'earliest' nor 'latest', nor an offset, nor a datetime")
        return _WORDS[place]
    if place < 0 and place not in _WORDS.values():
        raise ReadError(f"{place} is not an offset")
    return place
