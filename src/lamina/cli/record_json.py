"""A record as a line of JSON, in both directions: ``consume`` prints it, ``produce`` takes it.

The two are each other's inverse for everything that a producer decides: key, value, headers, partition, timestamp.
Must not know where the lines come from.
"""

import json
from base64 import b64decode
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lamina.cli.printing.tables import Row, Value
from lamina.cli.printing.text import readable, time_text
from lamina.client.errors import ClientError
from lamina.client.sender import ANY_PARTITION, NOW, Headers

if TYPE_CHECKING:
    from confluent_kafka import Message

_TAKEN = frozenset({"key", "key_encoding", "value", "value_encoding", "headers", "partition", "timestamp"})
_PASSED_OVER = frozenset({"type", "topic", "offset", "time", "timestamp_type", "leader_epoch"})
"""What ``consume`` prints and no producer decides."""
_HEADER_FIELDS = frozenset({"key", "key_encoding", "value", "value_encoding"})
_TIMESTAMP_TYPES = (None, "create", "append")
_headers_checked = methodcaller("headers")
"""For a key that is not UTF-8 the client returns a list with a hole and sets an error. A plain call, once the
interpreter has specialized it, does not look for the error and crashes on the hole; a call from C always looks."""


class BadRecord(ValueError):
    """A line is no record; the sentence says why."""


class GivenRecord(NamedTuple):
    """What a sender takes, in its order."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    partition: int = ANY_PARTITION
    timestamp_ms: int = NOW


def record_row(message: "Message") -> Row:
    key, key_encoding = readable(_bytes(message.key()))
    value, value_encoding = readable(_bytes(message.value()))
    kind, timestamp_ms = message.timestamp()
    timestamp_type = _TIMESTAMP_TYPES[kind]
    return {
        "type": "record",
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": None if timestamp_type is None else timestamp_ms,
        "time": None if timestamp_type is None else time_text(timestamp_ms),
        "timestamp_type": timestamp_type,
        "key": key,
        "key_encoding": key_encoding,
        "value": value,
        "value_encoding": value_encoding,
        "headers": [_header_row(name, _bytes(content)) for name, content in headers_of(message)],
        "leader_epoch": message.leader_epoch(),
    }


def _header_row(name: str, content: bytes | None) -> dict[str, Value]:
    key, key_encoding = readable(name.encode())
    value, value_encoding = readable(content)
    return {"key": key, "key_encoding": key_encoding, "value": value, "value_encoding": value_encoding}


def headers_of(message: "Message") -> Headers:
    """Raises ClientError for a key that the client cannot give: it is no UTF-8."""
    try:
        return cast(Headers, _headers_checked(message) or [])
    except (SystemError, UnicodeDecodeError) as error:
        raise ClientError(
            f"partition {message.partition()} at offset {message.offset()}: the key of a header is not UTF-8; "
            "read it with --format value, or with `lamina dump --records`"
        ) from error


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def parse_record(line: bytes) -> GivenRecord:
    """Raises BadRecord."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"it is not JSON ({error})") from error
    if not isinstance(row, dict):
        raise BadRecord("it is not a JSON object")
    if unknown := row.keys() - _TAKEN - _PASSED_OVER:
        raise BadRecord(f"a record has no field {min(unknown)!r}")
    if "value" not in row:
        raise BadRecord('it has no value; a tombstone is "value":null')
    return GivenRecord(
        value=_content(row, "value"),
        key=_content(row, "key"),
        headers=_headers(row.get("headers")),
        partition=_number(row, "partition", 2**31 - 1, ANY_PARTITION),
        timestamp_ms=_timestamp(row),
    )


def _content(row: dict[str, Any], name: str) -> bytes | None:
    given, encoding = row.get(name), row.get(f"{name}_encoding")
    if encoding not in ("text", "base64", None):
        raise BadRecord(f"{name}_encoding is {encoding!r}; it may be text or base64")
    if given is None:
        return None
    if not isinstance(given, str):
        raise BadRecord(f"{name} is not a string; put JSON inside a string, or give null")
    try:
        return b64decode(given, validate=True) if encoding == "base64" else given.encode()
    except UnicodeEncodeError as error:
        raise BadRecord(f"{name} holds half a surrogate pair, which has no bytes; give it in base64") from error
    except ValueError as error:
        raise BadRecord(f"{name} is not base64") from error


def _headers(given: Any) -> Headers | None:
    if given is None:
        return None
    if isinstance(given, dict):
        given = [{"key": key, "value": value} for key, value in given.items()]
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise BadRecord("headers is not a list of objects with key and value")
    return [_header(each) for each in given] or None


def _header(row: dict[str, Any]) -> tuple[str, str | bytes | None]:
    if unknown := row.keys() - _HEADER_FIELDS:
        raise BadRecord(f"a header has no field {min(unknown)!r}")
    key = _content(row, "key")
    if key is None:
        raise BadRecord("a header has no key")
    return header_key(key), _content(row, "value")


def header_key(key: bytes) -> str:
    """As librdkafka's client takes it."""
    try:
        name = key.decode()
    except UnicodeDecodeError as error:
        raise BadRecord("the key of a header is not UTF-8, as Kafka demands") from error
    if "\0" in name:
        raise BadRecord("the key of a header holds a zero byte, which librdkafka cannot send")
    return name


def _timestamp(row: dict[str, Any]) -> int:
    if row.get("timestamp") == 0:
        raise BadRecord("timestamp is 0, which librdkafka takes for now; leave it out, or give 1")
    return _number(row, "timestamp", 2**63 - 1, NOW)


def _number(row: dict[str, Any], name: str, largest: int, without: int) -> int:
    given = row.get(name)
    if given is None:
        return without
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= largest:
        raise BadRecord(f"{name} is {given!r}; it must be a whole number from 0 to {largest}")
    return given
