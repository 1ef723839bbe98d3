"""From a line to a record, as ``produce`` was told to read it. Must not know where the lines come from."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from lamina.cli.record_json import BadRecord, GivenRecord, parse_record
from lamina.client.sender import ANY_PARTITION, NOW, Headers

R = TypeVar("R", GivenRecord, GivenRecord | None)


class Given(NamedTuple):
    """What the command line says of every record."""

    headers: Headers | None = None
    partition: int = ANY_PARTITION
    timestamp_ms: int = NOW


def line_parser(
    separator: bytes | None, key_optional: bool, empty_is_tombstone: bool, given: Given
) -> Callable[[bytes], GivenRecord]:
    """Values, or keys and values."""
    headers, partition, timestamp_ms = given

    def value_of(line: bytes) -> GivenRecord:
        return GivenRecord(line, None, headers, partition, timestamp_ms)

    if separator is None:
        return value_of

    shown = separator.decode(errors="backslashreplace")

    def key_and_value_of(line: bytes) -> GivenRecord:
        key, found, value = line.partition(separator)
        if not found:
            if key_optional:
                return value_of(line)
            raise BadRecord(f"it has no separator {shown!r}; give --key-optional if lines may lack a key")
        is_tombstone = empty_is_tombstone and not value
        return GivenRecord(None if is_tombstone else value, key, headers, partition, timestamp_ms)

    return key_and_value_of


def json_parser(given: Given) -> Callable[[bytes], GivenRecord | None]:
    """JSON objects; a blank line is nothing. The command line wins, and its headers come behind the record's own."""

    def record_of(line: bytes) -> GivenRecord | None:
        if not line.strip():
            return None
        record = parse_record(line)
        return GivenRecord(
            record.value,
            record.key,
            [*(record.headers or ()), *(given.headers or ())] or None,
            record.partition if given.partition == ANY_PARTITION else given.partition,
            record.timestamp_ms if given.timestamp_ms == NOW else given.timestamp_ms,
        )

    return record_of


def with_key(parse: Callable[[bytes], R], demand: str) -> Callable[[bytes], R]:
    """Refuses a record without a key, as a compacted topic would; ``demand`` says what to do."""

    def record_of(line: bytes) -> R:
        record = parse(line)
        if record is not None and record.key is None:
            raise BadRecord(f"it has no key; {demand}")
        return record

    return record_of
