"""Kafka's own Java clients, driven line by line: typed calls over `java/Driver.java`.

Owns the child process and the shape of its commands. Leaving the `with` block halts the child without closing
its producers, so a transaction left open stays open.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NamedTuple

Isolation = Literal["read_uncommitted", "read_committed"]


class DriverError(Exception):
    """A command failed inside Kafka's client; the message is the Java exception's."""


@dataclass(frozen=True, slots=True)
class Record:
    """What one record says; `timestamp_ms` None lets the producer's clock decide."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as a Java consumer received it."""

    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class View:
    """One partition as a consumer of one isolation level sees it: offsets `[start_offset, end_offset)`."""

    start_offset: int
    end_offset: int
    records: tuple[StoredRecord, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    topic_id: str
    partitions: int
    configs: Mapping[str, str]


class Event(NamedTuple):
    at_ns: int
    """Of the clock that all processes of the machine share."""
    kind: str
    """`assigned`, `revoked`, `lost`, or the name of a Java exception."""
    generation: int
    """Of the group; in the consumer protocol the member's epoch."""
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Member:
    events: tuple[Event, ...]
    read: Mapping[int, tuple[int, ...]]
    """Offsets by partition, in the order in which they came."""

    @property
    def owned(self) -> frozenset[int]:
        owned: set[int] = set()
        for event in self.events:
            if event.kind == "assigned":
                owned.update(event.partitions)
            else:
                owned.difference_update(event.partitions)
        return frozenset(owned)


class Driver:
    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._process.communicate()

    def _run(self, do: str, **fields: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise DriverError(f"the driver ended during {do!r}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise DriverError(f"{do}: {answer['error']}")
        return answer

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None, partitions: int = 1) -> str:
        """Makes the topic and returns its id."""
        answer = self._run("create", topic=topic, partitions=partitions, configs=dict(configs or {}))
        return str(answer["topic_id"])

    def configure_topic(self, topic: str, configs: Mapping[str, str]) -> None:
        self._run("configure", topic=topic, configs=dict(configs))

    def describe_topic(self, topic: str) -> Topic:
        """Its id, its partitions and the configs that were set on the topic itself."""
        return Topic(**self._run("describe", topic=topic))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._run("delete_records", topic=topic, partition=partition, before=before_offset)

    def open_producer(self, name: str, configs: Mapping[str, str]) -> None:
        """A transactional one (`transactional.id`) is initialised at once."""
        self._run("open", producer=name, configs=dict(configs))

    def close_producer(self, name: str) -> None:
        self._run("close", producer=name)

    def send(self, producer: str, topic: str, records: Iterable[Record], partition: int = 0) -> list[int]:
        """Sends, flushes, and returns the acknowledged offsets; with a long linger this is one batch."""
        fields = [
            [topic, partition, sent.timestamp_ms, _hex(sent.key), _hex(sent.value), _hex_headers(sent)]
            for sent in records
        ]
        offsets: list[int] = self._run("send", producer=producer, records=fields)["offsets"]
        return offsets

    def begin(self, producer: str) -> None:
        self._run("begin", producer=producer)

    def commit(self, producer: str) -> None:
        self._run("commit", producer=producer)

    def abort(self, producer: str) -> None:
        self._run("abort", producer=producer)

    def send_offsets(self, producer: str, group: str, topic: str, partition: int, offset: int) -> None:
        self._run("send_offsets", producer=producer, group=group, topic=topic, partition=partition, offset=offset)

    def consume(self, group: str, topic: str, count: int, configs: Mapping[str, str] | None = None) -> None:
        """A member joins, reads at least `count` records, commits and leaves."""
        self._run("consume", group=group, topic=topic, count=count, configs=dict(configs or {}))

    def join(self, member: str, group: str, topic: str, configs: Mapping[str, str] | None = None) -> None:
        """A member joins and stays: it reads and commits until it leaves."""
        self._run("join", member=member, group=group, topic=topic, configs=dict(configs or {}))

    def leave(self, member: str) -> None:
        """Closes it; what happened to it is no longer told."""
        self._run("leave", member=member)

    def members(self) -> dict[str, Member]:
        """What happened so far to each member that has not left."""
        return {
            name: Member(
                tuple(Event(at, kind, number, tuple(partitions)) for at, kind, number, partitions in told["events"]),
                {int(partition): tuple(offsets) for partition, offsets in told["read"].items()},
            )
            for name, told in self._run("members").items()
        }

    def group_offsets(self, group: str) -> dict[str, int]:
        """What a group has committed, by `topic-partition`."""
        return self._run("offsets", group=group)

    def signal(self, number: int) -> None:
        """To the whole process with all its members."""
        self._process.send_signal(number)

    def read(self, topic: str, partition: int, isolation: Isolation) -> View:
        answer = self._run("read", topic=topic, partition=partition, isolation=isolation)
        records = tuple(record_from_fields(fields) for fields in answer["records"])
        return View(answer["start"], answer["end"], records)


def record_from_fields(fields: list[Any]) -> StoredRecord:
    """From `[offset, timestamp, key, value, [[header, value], …]]`, bytes in hex."""
    offset, timestamp_ms, key, value, headers = fields
    decoded = tuple((name, _unhex(content)) for name, content in headers)
    return StoredRecord(offset, Record(_unhex(key), _unhex(value), timestamp_ms, decoded))


def record_to_fields(stored: StoredRecord) -> list[Any]:
    record = stored.record
    return [stored.offset, record.timestamp_ms, _hex(record.key), _hex(record.value), _hex_headers(record)]


def _hex_headers(record: Record) -> list[tuple[str, str | None]]:
    return [(name, _hex(content)) for name, content in record.headers]


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def _unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
