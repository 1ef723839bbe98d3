"""Kafka's checkpoint text files: a version, a count, and a line for each entry (fact 88).

Owns the format and the offset checkpoints of a log directory. Must not know what the offsets mean.
"""

import re
from collections.abc import Iterable, Mapping

from lamina.log.files import Disk, read_file, write_new_file
from lamina.settings.log_config import LONG_MAX
from lamina.topic_partition import TopicPartition

RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"


_VERSION = "0"
_NUMBER = re.compile(r"[0-9]{1,19}")
"""Never negative: a log that began there would make files with names that no log has."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read; the sentence says why."""


def format_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in [_VERSION, str(len(entries)), *entries]).encode()


def parse_lines(data: bytes, fields: int) -> list[list[str]]:
    """The fields of every entry; an empty file has none."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"a checkpoint is not text: {error}") from None
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CheckpointError(f"a checkpoint has version {lines[0].strip()!r}, not {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or lines[1].strip() != str(len(entries)):
        raise CheckpointError(f"a checkpoint holds {len(entries)} entries and says {' '.join(lines[1:2]) or 'nothing'}")
    for number, entry in enumerate(entries, 3):
        if len(entry) != fields or not all(map(_is_number, entry[-2:])):
            raise CheckpointError(f"line {number} of a checkpoint is malformed: {' '.join(entry)!r}")
    return entries


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None and int(field) <= LONG_MAX


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return format_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    return {(topic, int(partition)): int(offset) for topic, partition, offset in parse_lines(data, fields=3)}


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """The entries of an offset checkpoint; none when there is no file."""
    try:
        return parse_offsets(read_file(disk, path))
    except FileNotFoundError:
        return {}


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_new_file(disk, path, format_offsets(offsets))
