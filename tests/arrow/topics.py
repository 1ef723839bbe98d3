"""Topics of a real broker, filled with what a test says, and read again."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lamina.arrow.properties import ClientProperties, parse_properties
from tests.broker.process import eventually

Pair = tuple[bytes | None, bytes | None]


def create(servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))]).values()
    made.result(30)


def delete(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (deleted,) = admin.delete_topics([topic]).values()
    deleted.result(30)


def delete_head(servers: str, topic: str, partition: int, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (deleted,) = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    deleted.result(30)


def produce(
    servers: str,
    topic: str,
    records: Iterable[Pair],
    *,
    partition: int = 0,
    timestamps: Sequence[int] | None = None,
    headers: Sequence[tuple[str, bytes | None]] | None = None,
    config: Mapping[str, str | int] | None = None,
) -> None:
    errors: list[KafkaError] = []

    def told(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **(config or {})})
    for number, (key, value) in enumerate(records):
        extra: dict[str, Any] = {} if timestamps is None else {"timestamp": timestamps[number]}
        if headers is not None:
            extra["headers"] = list(headers)
        producer.produce(topic, value, key, partition=partition, on_delivery=told, **extra)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not errors, errors[0]


def transact(servers: str, topic: str, values: Iterable[bytes], *, commits: bool, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-{commits}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    producer.flush(30)
    if commits:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


SMALL_SEGMENTS = {"cleanup.policy": "compact", "internal.segment.bytes": "20000"}


def make_compacted(servers: str, log_dir: Path, topic: str) -> None:
    """1,500 records of 50 keys, of which fewer than 600 are left: at least the latest of each, offsets 1450 to 1499.

    For a broker that compacts quickly.
    """
    create(servers, topic, config=SMALL_SEGMENTS)
    for number in range(30):
        produce(servers, topic, [(b"k%02d" % key, b"%d" % number * 20) for key in range(50)])
    _await_compaction(log_dir, topic, 1000)


def update_until_compacted(servers: str, log_dir: Path, topic: str, keys: Sequence[bytes]) -> None:
    """Every record of these keys that a topic of `SMALL_SEGMENTS` holds now is compacted away; newer ones take over."""
    produce(servers, topic, [(key, b"new") for key in keys])
    watermarks = Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    try:
        end = watermarks.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    finally:
        watermarks.close()
    for _ in range(20):
        produce(servers, topic, [(key, b"newer" * 200) for key in keys])
    _await_compaction(log_dir, topic, end - 1)


def _await_compaction(log_dir: Path, topic: str, beyond: int) -> None:
    checkpoint = log_dir / "cleaner-offset-checkpoint"

    def is_compacted() -> bool:
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        return any(int(line.split()[-1]) > beyond for line in lines if line.startswith(f"{topic} 0 "))

    eventually(is_compacted, seconds=120)


def numbered(count: int, first: int = 0) -> list[Pair]:
    return [(b"k%d" % number, b"v%d" % number) for number in range(first, first + count)]


def client(servers: str, properties: Mapping[str, str] | None = None) -> ClientProperties:
    return parse_properties({"bootstrap.servers": servers, "fetch.max.wait.ms": "50", **(properties or {})})
