"""The file of Kafka's kafka-delete-records: up to which offset records go, by partition.

Must not know files: bytes in, marks out.
"""

from dataclasses import dataclass
from typing import Any

from lamina.cli.kafka_file import check_different, entries_of, is_name, is_number, misshapen

ALL_RECORDS = -1


@dataclass(frozen=True, slots=True)
class Mark:
    topic: str
    partition: int
    offset: int
    """The first that is kept, or ``ALL_RECORDS``."""


def read_marks(data: bytes) -> list[Mark]:
    marks = [_mark(entry) for entry in entries_of(data)]
    check_different([(mark.topic, mark.partition) for mark in marks])
    return marks


def _mark(entry: Any) -> Mark:
    if isinstance(entry, dict):
        topic: Any = entry.get("topic")
        partition: Any = entry.get("partition")
        offset: Any = entry.get("offset")
        if is_name(topic) and is_number(partition, 0, 2**31) and is_number(offset, -1, 2**63):
            return Mark(topic, partition, offset)
    raise misshapen(entry, '{"topic": …, "partition": N, "offset": N}')
