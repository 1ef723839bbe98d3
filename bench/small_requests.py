"""Small requests in bytes, to be sent again and again: Produce of one record, Fetch of one, Metadata of one topic.

Owns the three requests, in versions whose layout is fixed (none has compact fields), and where their answers tell an
error. Everything is laid out here, by the protocol's description, so that no broker's own code has a part in it.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c

PRODUCE, FETCH, METADATA = 0, 1, 3
VERSIONS = {PRODUCE: 8, FETCH: 11, METADATA: 8}
PRODUCED_BYTES = 100
FETCHED_BYTES = 1_000
CALL_SECONDS = 30
_FETCH_MAX_BYTES = 1 << 20


class WrongAnswer(Exception):
    """A broker did not answer as the measurement needs it; one sentence."""


@dataclass(frozen=True, slots=True)
class SmallRequest:
    frame: bytes
    error_at: Callable[[bytes], int]
    """Where the first error code lies in an answer, its length included."""
    least_answer_bytes: int = 0
    """An answer that is shorter does not hold what was asked for."""


def produce_request(topic: str, partition: int = 0) -> SmallRequest:
    """Version 8, acks 1."""
    batch = one_record_batch(bytes(PRODUCED_BYTES), time.time_ns() // 1_000_000)
    return SmallRequest(produce_frame(topic, partition, batch), lambda _: produce_error_at(topic))


def produce_frame(topic: str, partition: int, batch: bytes | memoryview) -> bytes:
    return produce_head(topic, partition, len(batch)) + bytes(batch)


def produce_head(topic: str, partition: int, batch_bytes: int) -> bytes:
    """All of a Produce request but its batch, which ends it."""
    body = struct.pack(">hhi", -1, 1, 30_000) + struct.pack(">i", 1) + _text(topic)
    body += struct.pack(">iii", 1, partition, batch_bytes)
    return _frame(PRODUCE, body, batch_bytes)


def produce_error_at(topic: str) -> int:
    """Behind length, correlation id, topics, its name, partitions, its number."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


def fetch_request(topic: str, partition: int = 0) -> SmallRequest:
    """Version 11, from offset 0, without a session."""
    body = struct.pack(">iiiibii", -1, 500, 1, _FETCH_MAX_BYTES, 0, 0, -1)
    body += struct.pack(">i", 1) + _text(topic)
    body += struct.pack(">iiiqqi", 1, partition, -1, 0, -1, _FETCH_MAX_BYTES)
    body += struct.pack(">i", 0) + _text("")
    # Length, correlation id, throttle time, error, session, topics, its name, partitions, its number.
    error_at = 4 + 4 + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + 4
    return SmallRequest(_frame(FETCH, body), lambda _: error_at, FETCHED_BYTES)


def metadata_request(topic: str) -> SmallRequest:
    """Version 8."""
    body = struct.pack(">i", 1) + _text(topic) + struct.pack(">bbb", 0, 0, 0)
    return SmallRequest(_frame(METADATA, body), _metadata_error_at)


def _metadata_error_at(answer: bytes) -> int:
    """Behind the brokers, whose names may have any length."""
    (brokers,) = struct.unpack_from(">i", answer, 12)
    at = 16
    for _ in range(brokers):
        at = _after_text(answer, at + 4) + 4
        at = _after_text(answer, at)
    return _after_text(answer, at) + 4 + 4


def _after_text(answer: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", answer, at)
    return at + 2 + max(int(length), 0)


def one_record_batch(value: bytes, timestamp_ms: int) -> bytes:
    """A record batch of magic 2 with one record: no key, no headers, no producer."""
    record = b"\0\0\0" + _varint(-1) + _varint(len(value)) + value + b"\0"
    record = _varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    head = struct.pack(">ibI", -1, 2, crc32c(checked))
    return struct.pack(">qi", 0, len(head) + len(checked)) + head + checked


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 31)
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _frame(api_key: int, body: bytes, more_bytes: int = 0) -> bytes:
    header = struct.pack(">hhi", api_key, VERSIONS[api_key], 1) + _text("bench")
    return struct.pack(">i", len(header) + len(body) + more_bytes) + header + body


def checked_error_at(address: tuple[str, int], request: SmallRequest) -> int:
    """Send it once; where its answers tell an error, of which this one tells none."""
    with socket.create_connection(address, timeout=CALL_SECONDS) as connection:
        connection.sendall(request.frame)
        answer = receive_answer(connection)
    error_at = request.error_at(answer)
    if error := struct.unpack_from(">h", answer, error_at)[0]:
        raise WrongAnswer(f"{address[0]}:{address[1]} answered with error {error}")
    if len(answer) < request.least_answer_bytes:
        raise WrongAnswer(f"{address[0]}:{address[1]} answered {len(answer)} bytes, which is not what was asked for")
    return error_at


def receive_answer(connection: socket.socket) -> bytes:
    """One answer, its length in front. It may come in pieces."""
    size = _receive(connection, 4)
    return size + _receive(connection, struct.unpack(">i", size)[0])


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise WrongAnswer("the broker closed the connection")
        received += piece
    return bytes(received)
