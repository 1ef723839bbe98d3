"""Microseconds per message: Lamina's wire room beside kio, in one run. `python -m bench.wire`.

Reading and writing of the messages in protocol.md §3. kio's parser is native and its writer is Python; "kio"
is what `entity_reader` and `entity_writer` take. Where Lamina writes, its figure includes header and size.
"""

import io
from collections.abc import Callable
from random import Random
from time import perf_counter
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from lamina.wire.codec import encode_entity, encode_response, encode_response_around, parse_request
from lamina.wire.fetch_request import parse_fetch_request
from lamina.wire.fetch_response import PartitionFetched, TopicFetched, encode_fetch_response
from lamina.wire.frames import FrameSplitter
from lamina.wire.headers import parse_request_header, start_request
from lamina.wire.produce import (
    PartitionProduced,
    TopicProduced,
    encode_produce_response,
    parse_produce_request,
)
from lamina.wire.versions import nested_schema, request_schema, response_schema

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT = 0, 1, 3, 8, 12, 68
TOPIC_ID = UUID(int=Random(1).getrandbits(128))


def microseconds(call: Callable[[], object]) -> float:
    """The best of five rounds of about 20 ms each."""
    start = perf_counter()
    call()
    once = max(perf_counter() - start, 1e-7)
    rounds = max(1, int(0.02 / once))
    best = float("inf")
    for _ in range(5):
        start = perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, perf_counter() - start)
    return best / rounds * 1e6


def kio_writer(response: Any) -> Callable[[], bytes]:
    """kio's way to write the same response."""
    schema = load_response_schema(response.__api_key__, response.__version__)
    in_kio = entity_reader(schema)(bytes(encode_entity(response)), 0)[0]
    write = entity_writer(schema)

    def written() -> bytes:
        out = io.BytesIO()
        write(out, in_kio)
        return out.getvalue()

    return written


def row(name: str, ours: Callable[[], object], kio: Callable[[], object]) -> None:
    print(f"{name:<52}{microseconds(ours):>10.2f}{microseconds(kio):>10.2f}")


def parse_row(name: str, request: Any, parse: Callable[[int, bytes], object] | None = None) -> None:
    key, version = request.__api_key__, request.__version__
    body = bytes(encode_entity(request))
    reader = entity_reader(load_request_schema(key, version))
    if parse is None:
        row(f"read {name}", lambda: parse_request(key, version, body), lambda: reader(body, 0))
    else:
        row(f"read {name} (by hand)", lambda: parse(version, body), lambda: reader(body, 0))


def write_row(name: str, entity: Any) -> None:
    row(f"write {name}", lambda: encode_response(entity, 7), kio_writer(entity))


def produce_rows() -> None:
    for version in (9, 12):
        schema = request_schema(PRODUCE, version)
        topic = nested_schema(schema, "topic_data")
        partition = nested_schema(topic, "partition_data")
        for topics, partitions, size in (
            (1, 1, 1 << 10),
            (1, 1, 1 << 20),
            (1, 10, 1 << 14),
            (10, 10, 1 << 10),
        ):
            data = tuple(partition(index=index, records=bytes(size)) for index in range(partitions))
            request = schema(
                acks=-1,
                timeout=1000,
                topic_data=tuple(topic(name="topic", partition_data=data) for _ in range(topics)),
            )
            name = f"Produce request v{version}, {topics}x{partitions} x {size >> 10} KiB"
            parse_row(name, request, parse_produce_request)
        answer = response_schema(PRODUCE, version)
        topic = nested_schema(answer, "responses")
        partition = nested_schema(topic, "partition_responses")
        for topics, partitions in ((1, 1), (1, 10), (10, 10)):
            plain = tuple(
                partition(index=index, error_code=0, base_offset=5, record_errors=()) for index in range(partitions)
            )
            entity = answer(responses=tuple(topic(name="topic", partition_responses=plain) for _ in range(topics)))
            by_hand = [
                TopicProduced("topic", TOPIC_ID, [PartitionProduced(index, 0, 5) for index in range(partitions)])
            ] * topics
            name = f"Produce response v{version}, {topics}x{partitions}"
            write_row(name, entity)
            _by_hand(name, version, by_hand, entity)


def _by_hand(name: str, version: int, topics: list[TopicProduced], entity: Any) -> None:
    row(f"write {name} (by hand)", lambda: encode_produce_response(version, 7, topics, 0), kio_writer(entity))


def fetch_rows() -> None:
    for version in (12, 17):
        schema = request_schema(FETCH, version)
        topic = nested_schema(schema, "topics")
        partition = nested_schema(topic, "partitions")
        key = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "topic"}
        for count in (0, 1, 10, 100, 1000):
            partitions = tuple(
                partition(partition=index, fetch_offset=5, partition_max_bytes=1 << 20) for index in range(count)
            )
            topics = (topic(**key, partitions=partitions),) if count else ()
            request = schema(max_wait=500, min_bytes=1, topics=topics, forgotten_topics_data=())
            parse_row(f"Fetch request v{version}, {count} partitions", request, parse_fetch_request)
        answer = response_schema(FETCH, version)
        topic = nested_schema(answer, "responses")
        partition = nested_schema(topic, "partitions")
        for count, size in ((1, 0), (1, 1 << 16), (10, 1 << 16), (100, 1 << 10)):
            records = bytes(size)
            message = answer(
                throttle_time=0,
                error_code=0,
                responses=(
                    topic(
                        **key,
                        partitions=tuple(
                            partition(
                                partition_index=index,
                                error_code=0,
                                high_watermark=5,
                                aborted_transactions=None,
                                records=records,
                            )
                            for index in range(count)
                        ),
                    ),
                ),
            )
            hole = range(size) if size >= 1 << 16 else records
            fetched = [TopicFetched("topic", TOPIC_ID, [PartitionFetched(i, 0, 5, records=hole) for i in range(count)])]
            _fetch_row(version, f"v{version}, {count} x {size >> 10} KiB", fetched, message)


def _fetch_row(version: int, name: str, topics: list[TopicFetched], message: Any) -> None:
    write_row(f"Fetch response {name}", message)
    row(
        f"write Fetch response {name} (by hand)",
        lambda: encode_fetch_response(version, 7, topics, 0),
        kio_writer(message),
    )


def metadata_rows() -> None:
    schema = response_schema(METADATA, 12)
    topic = nested_schema(schema, "topics")
    partition = nested_schema(topic, "partitions")
    broker = nested_schema(schema, "brokers")
    partitions = tuple(
        partition(
            error_code=0,
            partition_index=index,
            leader_id=1,
            leader_epoch=3,
            replica_nodes=(1, 2, 3),
            isr_nodes=(1, 2, 3),
            offline_replicas=(),
        )
        for index in range(12)
    )
    brokers = tuple(broker(node_id=index, host="broker.example.com", port=9092) for index in range(3))
    for count in (1, 10, 100):
        topics = tuple(
            topic(error_code=0, name=f"topic-{index}", topic_id=TOPIC_ID, partitions=partitions)
            for index in range(count)
        )
        message = schema(throttle_time=0, brokers=brokers, cluster_id="c" * 22, controller_id=1, topics=topics)
        _metadata_row(count, message)


def _metadata_row(count: int, message: Any) -> None:
    cached = [encode_entity(each) for each in message.topics]
    write_row(f"Metadata response v12, {count} x 12 partitions", message)
    row(
        f"write Metadata response v12, {count} cached topics",
        lambda: encode_response_around(message, "topics", cached, 7),
        kio_writer(message),
    )


def group_rows() -> None:
    schema = request_schema(HEARTBEAT, 4)
    parse_row("Heartbeat request v4", schema(group_id="group", generation_id=5, member_id="m" * 40))
    write_row("Heartbeat response v4", response_schema(HEARTBEAT, 4)(throttle_time=0, error_code=0))
    schema = request_schema(OFFSET_COMMIT, 8)
    topic = nested_schema(schema, "topics")
    partition = nested_schema(topic, "partitions")
    for count in (1, 10):
        partitions = tuple(
            partition(partition_index=i, committed_offset=5, committed_metadata="") for i in range(count)
        )
        request = schema(group_id="group", member_id="m" * 40, topics=(topic(name="topic", partitions=partitions),))
        parse_row(f"OffsetCommit request v8, {count} partitions", request)
    schema = request_schema(METADATA, 12)
    topic = nested_schema(schema, "topics")
    parse_row(
        "Metadata request v12, 1 topic",
        schema(topics=(topic(topic_id=None, name="topic"),), include_topic_authorized_operations=False),
    )
    schema = response_schema(CONSUMER_GROUP_HEARTBEAT, 1)
    assignment = nested_schema(schema, "assignment")
    topics = (nested_schema(assignment, "topic_partitions")(topic_id=TOPIC_ID, partitions=tuple(range(10))),)
    message = schema(
        throttle_time=0,
        error_code=0,
        error_message=None,
        member_id="m" * 22,
        member_epoch=5,
        heartbeat_interval=5000,
        assignment=assignment(topic_partitions=topics),
    )
    write_row("ConsumerGroupHeartbeat response v1, 10 partitions", message)


def header_and_frame_rows() -> None:
    from kio.schema.request_header.v2 import RequestHeader

    header = bytes(start_request(FETCH, 17, 7, "rdkafka")[4:])
    reader = entity_reader(RequestHeader)
    row("read request header v2", lambda: parse_request_header(header), lambda: reader(header, 0))
    splitter = FrameSplitter(1 << 20)
    stream = (b"\0\0\0\x12" + header[:18].ljust(18, b"\0")) * 10

    def ten_frames() -> int:
        splitter.buffer_for_recv()[: len(stream)] = stream
        splitter.received(len(stream))
        return sum(map(len, splitter.frames()))

    print(f"{'split 10 small frames':<52}{microseconds(ten_frames):>10.2f}{'-':>10}")


if __name__ == "__main__":
    print(f"{'microseconds':<52}{'lamina':>10}{'kio':>10}")
    header_and_frame_rows()
    produce_rows()
    fetch_rows()
    metadata_rows()
    group_rows()
