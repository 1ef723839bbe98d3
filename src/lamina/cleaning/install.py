"""Putting the result of a pass in place: checked, made durable, swapped in group by group (facts 44, 78-80).

Owns what is checked and in which order the steps come. The caller runs the steps that wait for the disk on any
thread and asks for the next on the log's own. Appends and rolls between them are normal; the log must not be truncated
between two. Must not know why a pass was made, nor the checkpoint that is written after it.
"""

from collections.abc import Iterable
from functools import partial

from lamina.cleaning.contract import Manifest, OutputFile, OutputGroup, Plan, SourceSegment
from lamina.cleaning.gather import Taken
from lamina.log.files import Disk
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.leftovers import CLEANED
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import ABORTED_INDEX, LOG, Segment
from lamina.log.steps import Steps
from lamina.log.swap import remove_earlier_attempts
from lamina.records.checksum import crc32c

_READ_BYTES = 4 * 1024 * 1024
_NEEDED = (LOG, INDEX, TIME_INDEX)


class Refused(Exception):
    """Why a result is not put in place; the log is as it was. ``is_stale`` when the log, not the job, is the reason."""

    def __init__(self, reason: str, *, is_stale: bool = False) -> None:
        super().__init__(reason)
        self.is_stale = is_stale


def installing(
    log: PartitionLog,
    topic_id: bytes,
    taken: Taken,
    manifest: Manifest,
    now_ms: int,
    read_bytes: int = _READ_BYTES,
) -> Steps:
    """Install what ``manifest`` says that the job made of the plan. Raises :class:`Refused`, and so do its steps.

    After that, or after a step that raises ``OSError``, the log is sound: some groups are cleaned, the others are as
    they were, and the next pass does all of them again (fact 44). A disk error inside the swap fails the log.
    ``topic_id`` is whose the log is now.
    """
    plan = taken.plan
    _check_manifest(plan, manifest)
    check_log(log, topic_id, plan, taken.pairs())
    yield partial(_check_files, taken.disk, plan, manifest, read_bytes)
    planned = {source.base_offset: (segment, source) for segment, source in taken.pairs()}
    for group in manifest.groups:
        # Again before each group: between two of them the log may have been touched.
        sources = [planned[base_offset] for base_offset in group.sources]
        check_log(log, topic_id, plan, sources)
        present = log.segments.present(segment for segment, _ in sources)
        if present:
            yield partial(_link, taken.disk, plan, group)
            yield from log.replace([_segment(log, group)], present, now_ms)


def check_log(log: PartitionLog, topic_id: bytes, plan: Plan, sources: Iterable[tuple[Segment, SourceSegment]]) -> None:
    """Raise :class:`Refused` if the log, or any of these sources, is no longer what the plan speaks of.

    Sources that went because everything in them lies below the log start are passed over (fact 80).
    """
    if topic_id != plan.topic_id:
        raise Refused(f"{log.name} belongs to another topic of the same name by now", is_stale=True)
    if log.failure is not None:
        raise Refused(log.failure, is_stale=True)
    if not log.config.compact:
        raise Refused(f"{log.name} is no longer compacted: its cleanup.policy changed", is_stale=True)
    for segment, planned in sources:
        if segment not in log.segments:
            if planned.next_base_offset > log.log_start_offset:
                raise Refused(f"segment {planned.base_offset} of {log.name} was replaced meanwhile", is_stale=True)
        elif segment.size_bytes != planned.size_bytes:
            raise Refused(f"segment {planned.base_offset} of {log.name} was cut meanwhile", is_stale=True)


def _check_manifest(plan: Plan, manifest: Manifest) -> None:
    """Whether the manifest can be one of this plan: the job may be another version, or a machine that lies."""
    if manifest.plan_id != plan.plan_id:
        raise Refused(f"the job answered for plan {manifest.plan_id}, not for {plan.plan_id}")
    if manifest.end_offset != plan.first_uncleanable_offset:
        raise Refused(f"the job ended at {manifest.end_offset}, the plan at {plan.first_uncleanable_offset}")
    bases = [segment.base_offset for segment in plan.segments]
    numbers = {base_offset: number for number, base_offset in enumerate(bases)}
    done = 0
    for group in manifest.groups:
        start = numbers.get(group.base_offset, -1)
        if start < done or (not plan.only_expired and start != done):
            raise Refused(f"a group begins at {group.base_offset}, where the plan has none to begin")
        done = start + len(group.sources)
        if not group.sources or list(group.sources) != bases[start:done]:
            raise Refused(f"the group at {group.base_offset} is not made of segments that follow each other")
        if group.next_base_offset != plan.segments[done - 1].next_base_offset:
            raise Refused(
                f"the group at {group.base_offset} ends at {group.next_base_offset}, not where its sources do"
            )
        _check_names(group)
    if not plan.only_expired and done != len(bases):
        raise Refused(f"the job left out what begins at {bases[done]}")


def _check_names(group: OutputGroup) -> None:
    extensions = tuple(file.extension for file in group.files)
    if extensions not in (_NEEDED, (*_NEEDED, ABORTED_INDEX)):
        raise Refused(f"the group at {group.base_offset} has the files {', '.join(extensions) or 'of nothing'}")
    for file in group.files:
        if "/" in file.name or file.name in ("", ".", ".."):
            raise Refused(f"{file.name!r} is no name of a file in the pass folder")


def _check_files(disk: Disk, plan: Plan, manifest: Manifest, read_bytes: int) -> None:
    """Read every file back: what goes in place is what the job meant to write. What an earlier pass left goes."""
    remove_earlier_attempts(disk, plan.directory)
    for group in manifest.groups:
        for output in group.files:
            _check_file(disk, f"{plan.pass_folder}/{output.name}", output, read_bytes)


def _check_file(disk: Disk, path: str, output: OutputFile, read_bytes: int) -> None:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        raise Refused(f"the job did not leave {path}") from None
    try:
        size_bytes = file.size()
        if size_bytes != output.size_bytes:
            raise Refused(f"{path} has {size_bytes} bytes, the job wrote {output.size_bytes}")
        crc = 0
        for position in range(0, size_bytes, read_bytes):
            crc = crc32c(file.pread(read_bytes, position), crc)
        if crc != output.crc32c:
            raise Refused(f"{path} does not hold what the job wrote: its checksum is another one")
    finally:
        file.close()


def _link(disk: Disk, plan: Plan, group: OutputGroup) -> None:
    """Give the files of one new segment their ``.cleaned`` names, in place of any that an earlier attempt left.

    Nothing depends on these names: the swap brings the files to the disk before it gives them others.
    """
    stem = f"{plan.directory}/{group.base_offset:020d}"
    paths = [stem + output.extension + CLEANED for output in group.files]
    try:
        for output, path in zip(group.files, paths, strict=True):
            disk.unlink(path)
            disk.link(f"{plan.pass_folder}/{output.name}", path)
    except OSError:
        for path in paths:
            disk.unlink(path)
        raise


def _segment(log: PartitionLog, group: OutputGroup) -> Segment:
    sizes = {output.extension: output.size_bytes for output in group.files}
    segment = Segment.load(
        log.disk,
        log.path,
        group.base_offset,
        log.shape,
        size_bytes=sizes[LOG],
        modified_ms=group.modified_ms,
        has_aborted=ABORTED_INDEX in sizes,
        suffix=CLEANED,
    )
    segment.next_offset = group.next_base_offset
    return segment
