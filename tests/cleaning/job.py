"""A job for tests: rewrites a plan's sources as a cleaning job would, by the simplest rule there is.

The latest record of each key stays, judged by whole batches of one record; segments that follow each other go together
two by two. Good enough to show what gathering and installing do; what a real job keeps is the cleaning room's business.
"""

from pathlib import Path

from crc32c import crc32c

from lamina.cleaning.contract import (
    Counts,
    Dropped,
    Horizons,
    Manifest,
    OutputFile,
    OutputGroup,
    Plan,
    Seconds,
    SourceSegment,
)
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.segment import Segment
from lamina.records.batch import BatchHeader, walk
from lamina.records.record import read_records

LIMIT_BYTES = 1 << 20
NONE = Counts(0, 0, 0, 0, 0, 0, 0)


def do(plan: Plan, disk: Disk | None = None, attempt: str = "1", group_size: int = 2) -> Manifest:
    """Do the plan, leaving its files in the pass folder. Every source must be there."""
    latest: dict[bytes, int] = {}
    for _, header, key in _batches(plan.segments, plan):
        latest[key] = header.base_offset
    groups = [plan.segments[at : at + group_size] for at in range(0, len(plan.segments), group_size)]
    return Manifest(
        plan_id=plan.plan_id,
        attempt=attempt,
        end_offset=plan.first_uncleanable_offset,
        groups=tuple(_group(plan, group, latest, disk or Disk(), attempt) for group in groups),
        before=NONE,
        after=NONE,
        keys=len(latest),
        dropped=Dropped(0, 0, 0, 0, 0),
        horizons=Horizons(0, 0, None, None),
        bytes_read=0,
        bytes_written=0,
        seconds=Seconds(0.0, 0.0, 0.0, 0.0, 0.0),
    )


def _batches(sources: tuple[SourceSegment, ...], plan: Plan) -> list[tuple[bytes, BatchHeader, bytes]]:
    found = []
    for source in sources:
        data = Path(plan.pass_folder, source.log_name).read_bytes()
        assert len(data) == source.size_bytes
        for position, header in walk(data):
            (record,) = read_records(data, position, header, LIMIT_BYTES)
            found.append((data[position : position + header.size_bytes], header, record.key or b""))
    return found


def _group(
    plan: Plan, sources: tuple[SourceSegment, ...], latest: dict[bytes, int], disk: Disk, attempt: str
) -> OutputGroup:
    shape = IndexShape(plan.segment_index_bytes, plan.index_interval_bytes, OpenMaps(), IndexRebuilds())
    suffix = f".{plan.plan_id}-{attempt}"
    base_offset = sources[0].base_offset
    segment = Segment.create(disk, plan.pass_folder, base_offset, shape, 0, suffix=suffix + ".out")
    for data, header, key in _batches(sources, plan):
        if latest[key] == header.base_offset:
            segment.append(data, len(data), header.last_offset, header.max_timestamp)
    segment.seal()
    return OutputGroup(
        base_offset=base_offset,
        next_base_offset=sources[-1].next_base_offset,
        sources=tuple(source.base_offset for source in sources),
        modified_ms=sources[-1].modified_ms,
        files=tuple(_output(extension, segment.path(extension)) for extension in segment.extensions()),
    )


def _output(extension: str, path: str) -> OutputFile:
    data = Path(path).read_bytes()
    return OutputFile(extension, path.rpartition("/")[2], len(data), crc32c(data))
