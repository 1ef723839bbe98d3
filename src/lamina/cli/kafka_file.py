"""What the JSON files of Kafka's tools have in common: an object with a version and a list of entries.

Must not know files: bytes in, entries out.
"""

import json
from collections.abc import Hashable, Sequence
from typing import Any

_VERSION = 1


class KafkaFileError(ValueError):
    """The sentence says what is wrong in the file."""


def entries_of(data: bytes, name: str = "partitions") -> list[Any]:
    """The entries of the list with this name. The version may be left out."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise KafkaFileError("it is not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get(name), list):
        raise KafkaFileError(f'it must be an object with a list "{name}"')
    version = document.get("version", _VERSION)
    if version != _VERSION or isinstance(version, bool):
        raise KafkaFileError(f"version {version!r} is unknown; only {_VERSION} is supported")
    entries = document[name]
    assert isinstance(entries, list)
    if not entries:
        raise KafkaFileError(f"it names no {name.removesuffix('s')}")
    return entries


def check_different(keys: Sequence[Hashable], noun: str = "partition") -> None:
    if len(set(keys)) < len(keys):
        raise KafkaFileError(f"it names a {noun} twice")


def misshapen(entry: Any, form: str) -> KafkaFileError:
    """The error for an entry that is not of this form."""
    return KafkaFileError(f"{json.dumps(entry)[:80]} is not {form}")


def is_number(value: Any, start: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and start <= value < end


def is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
