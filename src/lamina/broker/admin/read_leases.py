"""``/v1/read-leases``: readers in other processes that hold files of this broker."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import page, whole_number, window
from lamina.broker.admin.subject import Subject
from lamina.broker.partitions.read_leases import ReadLease


async def read_leases(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    last = -1 if after is None else whole_number(after, "after")
    found = [lease for lease in subject.read_leases if lease.number > last]
    return await page(subject.clocks, "read_leases", found, limit, _row, lambda lease: lease.number)


def _row(lease: ReadLease) -> dict[str, Any]:
    return {
        "number": lease.number,
        "reader": lease.reader,
        "topic": lease.topic,
        "partition": lease.index,
        "log_dir": lease.directory.path,
        "start_offset": lease.start_offset,
        "end_offset": lease.end_offset,
        "files": len(lease.files),
        "held_bytes": lease.held_bytes,
        "began_ms": lease.began_ms,
    }
