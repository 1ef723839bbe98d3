"""The file of Kafka's kafka-delete-records: up to which offset records go, by partition.

Must not know files: bytes in, marks out.
"""

import json
from dataclasses import dataclass
from typing import Any

ALL_RECORDS = -1
_VERSION = 1


class OffsetsFileError(ValueError):
    """The sentence says what is wrong in the file."""


@dataclass(frozen=True, slots=True)
class Mark:
    topic: str
    partition: int
    offset: int
    """The first that is kept, or ``ALL_RECORDS``."""


def read_marks(data: bytes) -> list[Mark]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise OffsetsFileError("it is not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise OffsetsFileError('it must be an object with a list "partitions"')
    version = document.get("version", _VERSION)
    if version != _VERSION or isinstance(version, bool):
        raise OffsetsFileError(f"version {version!r} is unknown; only {_VERSION} is supported")
    marks = [_mark(entry) for entry in document["partitions"]]
    if not marks:
        raise OffsetsFileError("it names no partition")
    if len({(mark.topic, mark.partition) for mark in marks}) < len(marks):
        raise OffsetsFileError("it names a partition twice")
    return marks


def _mark(entry: Any) -> Mark:
    if isinstance(entry, dict):
        topic: Any = entry.get("topic")
        partition: Any = entry.get("partition")
        offset: Any = entry.get("offset")
        if isinstance(topic, str) and topic and _is_number(partition, 0, 2**31) and _is_number(offset, -1, 2**63):
            return Mark(topic, partition, offset)
    raise OffsetsFileError(f'{json.dumps(entry)[:80]} is not {{"topic": …, "partition": N, "offset": N}}')


def _is_number(value: Any, start: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and start <= value < end
