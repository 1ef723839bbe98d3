"""A Kafka client without mercy: one socket, whole requests or parts of them, answers as entities."""

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

from lamina.records.record import Record, build_batch
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.versions import nested_schema, request_schema

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
PRODUCE_VERSION, FETCH_VERSION, FETCH_BY_NAME, LIST_OFFSETS_VERSION, METADATA_VERSION = 9, 18, 12, 8, 12


BEYOND_PATIENCE_MS = 100_000
"""How long a fetch waits that has to be woken: longer than a test waits for an answer, or for a broker to stop."""


class Closed(Exception):
    """The broker ended the connection."""


class Reachable(Protocol):
    """A broker, wherever it runs."""

    def connect(self) -> socket.socket: ...


class RawClient:
    def __init__(self, broker: Reachable) -> None:
        self.socket = broker.connect()
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.socket.close()

    @property
    def peer(self) -> str:
        """How the broker's log names this client."""
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    # Bytes

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self.socket.recv(min(count, 1 << 20))
            except ConnectionResetError:
                raise Closed from None
            if not part:
                raise Closed
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def is_closed(self) -> bool:
        """Wait for the end of the connection; ``False`` if an answer comes in its place."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    # Requests

    def ask(self, request: Any) -> Any:
        self.begin(request)
        return self.answer(request.__api_key__, request.__version__)

    def begin(self, request: Any) -> None:
        self.send(self.encoded(request))

    def encoded(self, request: Any) -> bytes:
        """A whole frame, to be sent with others."""
        self._correlation_id += 1
        return bytes(encode_request(request, self._correlation_id, "raw"))

    def answer(self, api_key: int, api_version: int) -> Any:
        _, response = parse_response(api_key, api_version, self.receive_frame())
        return response

    def create_topic(self, name: str) -> UUID:
        """By auto-creation; returns the topic's id."""
        topic = self.ask(metadata_request(name)).topics[0]
        assert topic.error_code == 0, topic
        assert isinstance(topic.topic_id, UUID)
        return topic.topic_id

    def produce(self, topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1) -> Any:
        """The answer for the one partition."""
        answer = self.ask(produce_request(topic, batch, partition=partition, acks=acks))
        return answer.responses[0].partition_responses[0]

    def fetch(self, topic: UUID | str, offset: int, *, partition: int = 0, **asked: Any) -> Any:
        """The answer for the one partition."""
        return self.ask(fetch_request([(topic, [(partition, offset)])], **asked)).responses[0].partitions[0]

    def list_offset(self, topic: str, timestamp: int, *, partition: int = 0, leader_epoch: int = -1) -> Any:
        schema = request_schema(LIST_OFFSETS, LIST_OFFSETS_VERSION)
        topics = nested_schema(schema, "topics")
        asked = nested_schema(topics, "partitions")(
            partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        request = schema(replica_id=-1, isolation_level=0, topics=(topics(name=topic, partitions=(asked,)),))
        return self.ask(request).topics[0].partitions[0]


def batch_of(*records: tuple[bytes | None, bytes | None], now_ms: int, **fields: Any) -> bytes:
    """A batch of keys and values, all at ``now_ms``."""
    return bytes(
        build_batch([Record(offset, now_ms, key, value) for offset, (key, value) in enumerate(records)], **fields)
    )


def metadata_request(*names: str, create: bool = True) -> Any:
    schema = request_schema(METADATA, METADATA_VERSION)
    topic = nested_schema(schema, "topics")
    return schema(
        topics=tuple(topic(topic_id=None, name=name) for name in names),
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=False,
    )


def produce_request(
    topic: str,
    batch: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = PRODUCE_VERSION,
    timeout_ms: int = 30_000,
) -> Any:
    schema = request_schema(PRODUCE, version)
    topics = nested_schema(schema, "topic_data")
    data = nested_schema(topics, "partition_data")(index=partition, records=batch)
    return schema(
        transactional_id=None,
        acks=acks,
        timeout=timeout_ms,
        topic_data=(topics(name=topic, partition_data=(data,)),),
    )


def fetch_request(
    topics: Sequence[tuple[UUID | str, Sequence[tuple[int, int]]]],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    forgotten: Sequence[tuple[UUID, Sequence[int]]] = (),
) -> Any:
    """``topics``: (id or name, ((partition, offset), …)). Names are asked in the last version that has them."""
    by_name = any(isinstance(topic, str) for topic, _ in topics)
    schema = request_schema(FETCH, FETCH_BY_NAME if by_name else FETCH_VERSION)
    topic_schema = nested_schema(schema, "topics")
    partition_schema = nested_schema(topic_schema, "partitions")
    forgotten_schema = nested_schema(schema, "forgotten_topics_data")
    asked = tuple(
        topic_schema(
            **{"topic" if by_name else "topic_id": topic},
            partitions=tuple(
                partition_schema(
                    partition=partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=offset,
                    partition_max_bytes=partition_max_bytes,
                )
                for partition, offset in partitions
            ),
        )
        for topic, partitions in topics
    )
    return schema(
        **({"replica_id": -1} if by_name else {}),
        max_wait=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=asked,
        forgotten_topics_data=tuple(
            forgotten_schema(topic_id=topic, partitions=tuple(partitions)) for topic, partitions in forgotten
        ),
        rack_id="",
    )
