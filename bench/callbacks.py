"""How long the loop is ever held up: the longest callback while many partitions roll and expire and every API is new.

A callback that computes keeps every other client waiting, so this bounds what one client costs the rest.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.subjects import Subject, address, new_lamina
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.fields import REQUIRED, Entity, Field, fields_of
from lamina.wire.versions import UnknownMessage, request_schema

PARTITIONS = 1000
BAR_MS = 5.0
WAIT_SECONDS = 60
ANSWER_SECONDS = 1.0
TOPIC = "callbacks"
SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "log.roll.ms": "1500",
    "log.retention.ms": "4000",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
}

_API_VERSIONS_KEY = 18


class Callback(NamedTuple):
    cpu_ms: float
    name: str


Phases = dict[str, list[Callback]]
"""What the broker was doing, and its longest callbacks meanwhile, longest first."""


def worst_ms(phases: Phases) -> float:
    return max(callbacks[0].cpu_ms for callbacks in phases.values())


def measure_callbacks() -> Phases:
    with tempfile.TemporaryDirectory() as root:
        report = Path(root) / "callbacks.json"
        command = [sys.executable, "-m", "bench.timed_loop", str(report)]
        with new_lamina(Path(root), command, SETTINGS) as lamina:
            take_report(lamina.process_id, report)
            first_calls(lamina)
            phases = {"every API gets its first call": take_report(lamina.process_id, report)}
            produce_to_all(lamina)
            take_report(lamina.process_id, report)
            time.sleep(int(SETTINGS["log.roll.ms"]) / 1000)
            produce_to_all(lamina)
            phases[f"{PARTITIONS:,} partitions roll"] = take_report(lamina.process_id, report)
            wait_until_expired(lamina)
            phases[f"{PARTITIONS:,} partitions expire"] = take_report(lamina.process_id, report)
            return phases


def take_report(process_id: int, report: Path) -> list[Callback]:
    """The longest callbacks of a broker on a timed loop, since its last report."""
    os.kill(process_id, signal.SIGUSR2)
    deadline = time.monotonic() + WAIT_SECONDS
    while not report.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the timed loop did not report")
        time.sleep(0.01)
    longest = json.loads(report.read_text())
    report.unlink()
    return [Callback(cpu_ns / 1e6, name) for cpu_ns, name in longest]


def produce_to_all(subject: Subject) -> None:
    producer = Producer({"bootstrap.servers": subject.bootstrap})
    producer.produce(TOPIC, b"made", partition=0)
    producer.flush(WAIT_SECONDS)
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, bytes(100), partition=partition)
    if producer.flush(WAIT_SECONDS):
        raise TimeoutError(f"{PARTITIONS} partitions did not take a message each within {WAIT_SECONDS} s")


def wait_until_expired(subject: Subject) -> None:
    """Until the first records of every partition are gone."""
    consumer = Consumer({"bootstrap.servers": subject.bootstrap, "group.id": "callbacks"})
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        for partition in range(PARTITIONS):
            where = TopicPartition(TOPIC, partition, OFFSET_BEGINNING)
            while consumer.get_watermark_offsets(where, WAIT_SECONDS)[0] < 2:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{TOPIC}-{partition} did not expire within {WAIT_SECONDS} s")
                time.sleep(0.1)
    finally:
        consumer.close()


# Every API's first call


def first_calls(subject: Subject) -> None:
    """A request that says nothing to every API that the broker offers, in its newest version."""
    schema = request_schema(_API_VERSIONS_KEY, 3)
    offered = ask(subject, empty_message(schema))
    assert offered is not None
    _, versions = parse_response(_API_VERSIONS_KEY, 3, offered)
    for api in versions.api_keys:
        try:
            schema = request_schema(api.api_key, api.max_version)
        except UnknownMessage:
            continue
        ask(subject, empty_message(schema))


def ask(subject: Subject, message: Any) -> bytes | None:
    """The answer's frame; none if the broker hung up or waits for something."""
    with socket.create_connection(address(subject), timeout=ANSWER_SECONDS) as connection:
        try:
            connection.sendall(encode_request(message, 1, "callbacks"))
            size = connection.recv(4, socket.MSG_WAITALL)
            return connection.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL) if size else None
        except (TimeoutError, ConnectionError):
            return None


def empty_message(entity_type: type[Entity]) -> Any:
    required = [field for field in fields_of(entity_type) if field.default is REQUIRED]
    return entity_type(**{field.name: _empty(field) for field in required})


def _empty(field: Field) -> Any:
    if field.is_array:
        return ()
    if field.nullable:
        return None
    if field.entity is not None:
        return empty_message(field.entity)
    return _EMPTY.get(field.wire_type, 0)


_EMPTY: dict[str, Any] = {
    "string": "x",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "float64": 0.0,
    "uuid": None,
    "error_code": 0,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "datetime_i64": datetime.fromtimestamp(0, UTC),
}
