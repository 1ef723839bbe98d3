"""What a reader makes of a response to Fetch: records by offset, and which of them are committed."""

from typing import NamedTuple

from lamina.peer.fetching import Fetched
from lamina.records.batch import walk
from lamina.records.record import iterate_records

MARKER = b"(marker)"
_LIMIT_BYTES = 1 << 20


class Read(NamedTuple):
    offset: int
    value: bytes
    """`MARKER` for that which ends a transaction."""
    is_visible: bool
    """Whether a reader of committed records hands it out."""


def read(fetched: Fetched) -> list[Read]:
    """The records of whole batches, in order; those of aborted transactions are known by the response alone."""
    waiting = sorted((one.first_offset, one.producer_id) for one in fetched.aborted_transactions)
    aborting: set[int] = set()
    records: list[Read] = []
    for position, header in walk(fetched.records):
        while waiting and waiting[0][0] <= header.base_offset:
            aborting.add(waiting.pop(0)[1])
        if header.is_control:
            aborting.discard(header.producer_id)
            records.append(Read(header.base_offset, MARKER, is_visible=False))
            continue
        is_visible = not (header.is_transactional and header.producer_id in aborting)
        records += [
            Read(record.offset, bytes(record.value or b""), is_visible)
            for record in iterate_records(fetched.records, position, header, _LIMIT_BYTES)
        ]
    return records
