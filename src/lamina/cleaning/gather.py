"""From a live log to the plan of one pass, taken at one instant (fact 105), and the folder in which the pass works.

Owns what a plan says. ``take`` reads the log's own state and runs on its thread; ``prepare`` touches only files and may
run on any. The folder lies inside the partition's directory and holds a hard link to each source, so that none of them
can vanish under the job; its names need not survive a crash: the next start empties it. Must not know which logs are
to be cleaned, nor who does it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lamina.cleaning.contract import AbortedEntry, ActiveProducer, Plan, SourceSegment
from lamina.cleaning.failures import NotEnoughFreeSpace
from lamina.log.files import Disk
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import LOG, Segment


@dataclass(frozen=True, slots=True)
class PassLimits:
    """What a pass may take."""

    memory_bytes: int
    throttle_bytes_per_second: float | None
    keep_free_bytes: int = 0
    """What has to stay free on the disk, whatever the pass writes."""


@dataclass(frozen=True, slots=True)
class PassRange:
    """What the pass is about."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    only_expired: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """What was true of a log at the instant of the plan."""

    plan: Plan
    """Without the sizes of the indexes, which are only on disk."""
    sources: tuple[Segment, ...]
    """The segments themselves: one that is replaced or cut meanwhile is another one, or has another size."""
    disk: Disk

    def pairs(self) -> Iterator[tuple[Segment, SourceSegment]]:
        """Each source with what the plan says of it."""
        return zip(self.sources, self.plan.segments, strict=True)


def take(
    log: PartitionLog,
    topic_id: bytes,
    extent: PassRange,
    limits: PassLimits,
    *,
    plan_id: str,
    hash_key: bytes,
    now_ms: int,
) -> Taken:
    """What a pass over ``extent`` has to know of the log. Raises ``ValueError`` for a torn transaction index."""
    log.require_online()
    config = log.config
    sources = tuple(segment for segment in log.segments if segment.base_offset < extent.first_uncleanable_offset)
    ends = [segment.base_offset for segment in sources[1:]] + [extent.first_uncleanable_offset]
    plan = Plan(
        plan_id=plan_id,
        topic=log.topic,
        topic_id=topic_id,
        partition=log.partition,
        directory=log.path,
        pass_time_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        max_message_bytes=config.max_message_bytes,
        first_dirty_offset=extent.first_dirty_offset,
        first_uncleanable_offset=extent.first_uncleanable_offset,
        segments=tuple(_source(segment, end) for segment, end in zip(sources, ends, strict=True)),
        producers=tuple(
            ActiveProducer(
                producer.producer_id, producer.epoch, producer.last_data_offset if producer.batches else None
            )
            for producer in log.producers.producers.values()
        ),
        aborted=tuple(AbortedEntry(*entry) for segment in log.segments for entry in segment.aborted.entries()),
        memory_limit_bytes=limits.memory_bytes,
        throttle_bytes_per_second=limits.throttle_bytes_per_second,
        hash_key=hash_key,
        only_expired=extent.only_expired,
        keep_free_bytes=limits.keep_free_bytes,
    )
    return Taken(plan, sources, log.disk)


def _source(segment: Segment, next_base_offset: int) -> SourceSegment:
    return SourceSegment(
        base_offset=segment.base_offset,
        next_base_offset=next_base_offset,
        size_bytes=segment.size_bytes,
        index_bytes=0,
        time_index_bytes=0,
        modified_ms=segment.modified_ms,
        log_name=f"{segment.base_offset:020d}{LOG}",
    )


def prepare(taken: Taken) -> Plan:
    """Make the pass folder with the links to the sources. Returns the plan that the job is given.

    Raises :class:`NotEnoughFreeSpace`, or ``OSError``: a missing source fails the pass, it is never read as empty.
    """
    plan, disk = taken.plan, taken.disk
    _check_free_space(taken)
    sizes = {entry.name: entry.size_bytes for entry in disk.scan(plan.directory) if not entry.is_dir}
    disk.make_dir(plan.pass_folder)
    for segment in plan.segments:
        disk.link(f"{plan.directory}/{segment.log_name}", f"{plan.pass_folder}/{segment.log_name}")
    return _with_index_sizes(plan, sizes)


def _with_index_sizes(plan: Plan, sizes: dict[str, int]) -> Plan:
    """An index that an operator removed counts nothing: it will be made again."""

    def sized(segment: SourceSegment) -> SourceSegment:
        stem = segment.log_name.removesuffix(LOG)
        return replace(
            segment, index_bytes=sizes.get(stem + INDEX, 0), time_index_bytes=sizes.get(stem + TIME_INDEX, 0)
        )

    return replace(plan, segments=tuple(map(sized, plan.segments)))


def _check_free_space(taken: Taken) -> None:
    """The new files may be as large as the old ones, which stay until after the swap."""
    plan = taken.plan
    free_bytes = taken.disk.free_bytes(plan.directory)
    if free_bytes < plan.source_bytes + plan.keep_free_bytes:
        raise NotEnoughFreeSpace(
            f"{plan.directory} may need {plan.source_bytes} bytes for a pass, {free_bytes} are free on its disk "
            f"and {plan.keep_free_bytes} must stay free: free some space, or lower lamina.disk.free.min.bytes"
        )


def discard(plan: Plan, disk: Disk) -> None:
    """Remove the pass folder with all that is in it. May run on any thread."""
    disk.remove_tree(plan.pass_folder)
