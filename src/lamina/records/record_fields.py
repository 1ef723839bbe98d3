"""Where the fields of one record lie: the one plain parser, on which all that reads records in plain Python builds.

Owns what makes a record well-formed (formats.md §2.2), and the sentence for each thing that may be wrong with it.
``columns.numbers`` is the same for compiled code, which looks here for the sentence. Must not know the batch around a
record, nor what its fields mean.
"""

from lamina.errors import CorruptMessage
from lamina.records.batch import Buffer
from lamina.records.varint import read_varint, read_varlong

Fields = tuple[int, int, int, int, int, int, int]
"""A record's end, its timestamp delta and its offset delta; where the key's bytes begin and how many they are, −1 being
null; the same of the value. The headers lie behind the value's bytes."""

_LEAST_HEADER_BYTES = 2
"""An empty key and no value."""


def parse_record(records: Buffer, position: int, size: int, index: int) -> Fields:
    """The record at ``position`` in ``size`` bytes, the batch's record ``index``, without building anything of it.

    Raises :class:`CorruptMessage` unless its fields are well-formed and end where it says that it ends.
    """
    if position == size:
        raise CorruptMessage(f"the records end where record {index} should begin")
    length, position = read_varint(records, position)
    end = position + length
    if length < 0 or end > size:
        raise CorruptMessage(f"record {index} claims {length} bytes, {size - position} are left")
    try:
        # A byte without its highest bit is a whole number, as most are: read here, for calls are what takes time.
        byte = records[position + 1]  # past the attributes, which mean nothing
        if byte < 0x80:
            timestamp_delta = (byte >> 1) ^ -(byte & 1)
            position += 2
        else:
            timestamp_delta, position = read_varlong(records, position + 1)
        offset_delta, position = read_varint(records, position)
        byte = records[position]
        if byte < 0x80:
            key_length = (byte >> 1) ^ -(byte & 1)
            key_at = position + 1
        else:
            key_length, key_at = read_varint(records, position)
        if key_length > 0:
            position = key_at + key_length
            if position > end:
                raise CorruptMessage(f"the key of record {index} reaches {position - end} bytes past the record")
        elif key_length < -1:
            raise CorruptMessage(f"record {index} has a key of {key_length} bytes")
        else:
            position = key_at
        value_length, value_at = read_varint(records, position)
        if value_length > 0:
            position = value_at + value_length
            if position > end:
                raise CorruptMessage(f"the value of record {index} reaches {position - end} bytes past the record")
        elif value_length < -1:
            raise CorruptMessage(f"record {index} has a value of {value_length} bytes")
        else:
            position = value_at
        position = _skip_headers(records, position, end, index) if records[position] else position + 1
    except IndexError:
        raise CorruptMessage("the records end inside a number") from None
    if position != end:
        raise CorruptMessage(f"record {index} claims {length} bytes, its fields take {length + position - end}")
    return end, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length


def _skip_headers(records: Buffer, position: int, end: int, index: int) -> int:
    count, position = read_varint(records, position)
    if count < 0:
        raise CorruptMessage(f"record {index} counts {count} headers")
    left_bytes = max(end - position, 0)
    if count * _LEAST_HEADER_BYTES > left_bytes:
        raise CorruptMessage(f"record {index} counts {count} headers, more than {left_bytes} bytes can hold")
    for _ in range(count):
        length, position = read_varint(records, position)
        if length < 0:
            raise CorruptMessage(f"record {index} has a header without a key")
        length, position = read_varint(records, position + length)
        if length < -1:
            raise CorruptMessage(f"record {index} has a header with a value of {length} bytes")
        position += max(length, 0)
        if position > end:
            raise CorruptMessage(f"a header of record {index} reaches {position - end} bytes past the record")
    return position
