"""Batches of one record, neither compressed nor part of a transaction: what coordinators write for each decision.

A log of a million of them is read here in one loop that makes no objects but keys and values, about ten times as fast
as record by record. Whatever is not of this kind, or not sound, is left where it is: ``batch`` and ``record`` have the
last word on it. Must not know what the records say.
"""

from struct import Struct

from lamina.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC

_HEADER = Struct(">qi4xb4xhi30xi")
"""Base offset, length, magic, attributes, last offset delta, number of records."""
_SHORTEST = HEADER_BYTES + 7
_CUT_SHORT = 0x80
"""A varint goes on behind a byte with this bit."""

Latest = dict[bytes | None, bytes | None]


def take_plain(buffer: bytes, position: int, latest: Latest) -> tuple[int, int | None]:
    """Put what each batch from ``position`` on says into ``latest``, where the last key put in is the last in order.

    Stops before the first batch that is cut off or not plain. Returns where that is, and the offset behind the last
    batch that was taken, ``None`` if there was none.
    """
    unpack, forget = _HEADER.unpack_from, latest.pop
    end, next_offset = len(buffer), None
    while position + _SHORTEST <= end:
        base_offset, length, magic, attributes, last_offset_delta, count = unpack(buffer, position)
        next_position = position + LOG_OVERHEAD_BYTES + length
        if magic != MAGIC or attributes or last_offset_delta or count != 1 or base_offset < 0 or next_position > end:
            break
        at = position + HEADER_BYTES
        size = buffer[at]
        at += 1
        if size >= _CUT_SHORT:
            if buffer[at] >= _CUT_SHORT:
                break
            size = (size & 0x7F) | buffer[at] << 7
            at += 1
        # The record's attributes mean nothing; one record's time and offset do not differ from its batch's.
        if at + (size >> 1) != next_position or size & 1 or buffer[at + 1] or buffer[at + 2]:
            break
        size = buffer[at + 3]
        at += 4
        if size >= _CUT_SHORT:
            if buffer[at] >= _CUT_SHORT:
                break
            size = (size & 0x7F) | buffer[at] << 7
            at += 1
        value_at = at + (size >> 1)
        if size & 1 or value_at + 2 > next_position:
            break
        key = buffer[at:value_at]
        size = buffer[value_at]
        at = value_at + 1
        if size == 1:
            value = None
        else:
            if size >= _CUT_SHORT:
                if buffer[at] >= _CUT_SHORT:
                    break
                size = (size & 0x7F) | buffer[at] << 7
                at += 1
            value = buffer[at : at + (size >> 1)]
            at += size >> 1
        # Behind the value only the number of headers, which is none. An odd size is a wrong one.
        if at + 1 != next_position or buffer[at] or (size & 1 and value is not None):
            break
        forget(key, None)
        latest[key] = value
        next_offset = base_offset + 1
        position = next_position
    return position, next_offset
