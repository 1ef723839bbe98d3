"""The CSV of Kafka's kafka-consumer-groups --reset-offsets: ``topic,partition,offset``, or with the group in front.

Must not know files: text in, offsets out, and back.
"""

import csv
import io
from collections.abc import Mapping

Partition = tuple[str, int]


class ResetFileError(ValueError):
    """The sentence says what is wrong in the file."""


def read_offsets(data: bytes, group: str) -> dict[Partition, int]:
    """Of lines that name a group, those of another are passed over."""
    try:
        lines = [line for line in csv.reader(io.StringIO(data.decode())) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ResetFileError(f"it is not CSV: {error}") from None
    offsets: dict[Partition, int] = {}
    for line in lines:
        if len(line) == 4 and line[0].strip() != group:
            continue
        *_, topic, partition, offset = [cell.strip() for cell in (line if len(line) in (3, 4) else ("", "", ""))]
        if not (topic and _is_number(partition, 2**31) and _is_number(offset, 2**63)):
            raise ResetFileError(
                f"{','.join(line)[:80]!r} is not topic,partition,offset or group,topic,partition,offset"
            )
        if (topic, int(partition)) in offsets:
            raise ResetFileError(f"it names {topic}-{partition} twice")
        offsets[topic, int(partition)] = int(offset)
    if not offsets:
        raise ResetFileError(f"it has no offset for {group}")
    return offsets


def write_offsets(offsets: Mapping[Partition, int]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((*partition, offset) for partition, offset in offsets.items())
    return out.getvalue()


def _is_number(text: str, end: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) < end
