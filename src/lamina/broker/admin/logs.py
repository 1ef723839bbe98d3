"""``/v1/logs`` and a partition's segments: what lies on disk."""

import shutil
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import json_answer, page, whole_number, window
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.topics import find_partition
from lamina.broker.turns import in_turns
from lamina.log.directory import LogDirectory
from lamina.log.index_pair import TIME_INDEX
from lamina.log.segment import Segment
from lamina.log.segment_times import SegmentTimes, read_times


async def directories(subject: Subject, _request: Request) -> Response:
    return json_answer({"log_dirs": [await _directory(subject, one) for one in subject.directories]})


async def _directory(subject: Subject, directory: LogDirectory) -> dict[str, Any]:
    sizes = [log.size_bytes() async for log in in_turns(list(directory.logs.values()), subject.clocks)]
    total_bytes = usable_bytes = None
    try:
        volume = await subject.scan_pool.read(lambda: shutil.disk_usage(directory.path))
        total_bytes, usable_bytes = volume.total, volume.free
    except OSError:
        pass
    return {
        "path": directory.path,
        "is_online": directory.failure is None,
        "failure": directory.failure,
        "partitions": len(sizes),
        "size_bytes": sum(sizes),
        "total_bytes": total_bytes,
        "usable_bytes": usable_bytes,
    }


async def segments(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    log = find_partition(subject, request).log
    first = 0 if after is None else whole_number(after, "after") + 1
    found = [segment for segment in log.segments if segment.base_offset >= first]
    paths = [(segment.path(), segment.path(TIME_INDEX)) for segment in found[:limit]]
    times = await subject.scan_pool.read(lambda: [read_times(log.disk, *both) for both in paths])
    by_base = {segment.base_offset: one for segment, one in zip(found, times, strict=False)}
    active = log.segments.active
    return await page(
        subject.clocks,
        "segments",
        found,
        limit,
        lambda segment: _row(segment, by_base[segment.base_offset], is_active=segment is active),
        lambda segment: segment.base_offset,
    )


def _row(segment: Segment, times: SegmentTimes, *, is_active: bool) -> dict[str, Any]:
    largest = segment.largest_timestamp().timestamp if is_active else times.largest_timestamp
    return {
        "base_offset": segment.base_offset,
        "next_offset": segment.next_offset,
        "is_active": is_active,
        "size_bytes": segment.size_bytes,
        "largest_timestamp_ms": None if largest is None or largest < 0 else largest,
        "modified_ms": times.modified_ms,
        "file": segment.path().rpartition("/")[2],
    }
