"""Loads that librdkafka puts on a broker, through confluent-kafka.

Owns the clients' settings: the same for every broker that is measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

CALL_SECONDS = 30
BATCH_MESSAGES = 10_000
LATENCY_WARM_UP = 200
LINGER_MS = 5
"""What librdkafka has by default."""
PRODUCER = {
    "linger.ms": LINGER_MS,
    "batch.size": 1_000_000,
    "acks": 1,
    # The whole load fits the client's queue: no call of it ever waits.
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
CONSUMER = {
    "group.id": "bench",
    "enable.auto.commit": False,
    # With the default of 100,000 the client stops asking for a second whenever it has that many.
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1_000_000,
    # A fetch at the end of the log is answered soon, so that no consumer waits for it when it ends.
    "fetch.wait.max.ms": 10,
}
_PLAIN: Mapping[str, str] = MappingProxyType({})
"""What a client needs besides to speak to a plain listener."""


def create_topic(
    bootstrap: str,
    topic: str,
    configs: Mapping[str, str] | None = None,
    partitions: int = 1,
    first_value_bytes: int = 100,
    replicas: int | Sequence[Sequence[int]] = 1,
) -> None:
    """Make a topic and return when it has taken a message: a Kafka leads it a moment after it said so.

    ``replicas`` is how many, or the brokers of each partition, the first of which leads.
    """
    if isinstance(replicas, int):
        new = NewTopic(topic, partitions, replicas, config=dict(configs or {}))
    else:
        new = NewTopic(topic, len(replicas), replica_assignment=[*map(list, replicas)], config=dict(configs or {}))
    admin = new_admin(bootstrap)
    admin.create_topics([new])[topic].result(CALL_SECONDS)
    one_at_a_time_ms(bootstrap, topic, 1, warm_up=0, value_bytes=first_value_bytes)


def new_admin(bootstrap: str, security: Mapping[str, str] = _PLAIN) -> AdminClient:
    # Else it says when it ends, and that its broker has ended.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **security})


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = new_admin(bootstrap)
    admin.delete_topics([topic])[topic].result(CALL_SECONDS)


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, **CONSUMER})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), CALL_SECONDS)[1]
    finally:
        consumer.close()


def produce_seconds(
    bootstrap: str,
    topic: str,
    value_bytes: int,
    count: int,
    linger_ms: int = LINGER_MS,
    acks: int | str = 1,
    security: Mapping[str, str] = _PLAIN,
) -> float:
    """From the first call until the last message is acknowledged."""
    config = {**PRODUCER, "linger.ms": linger_ms, "acks": acks, **security}
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    producer.list_topics(topic, CALL_SECONDS)
    messages = [{"value": bytes(value_bytes)}] * BATCH_MESSAGES
    started = time.perf_counter()
    for begin in range(0, count, BATCH_MESSAGES):
        some = messages[: count - begin]
        if producer.produce_batch(topic, some, partition=0) != len(some):
            raise BufferError(f"{topic}: librdkafka did not take all messages into its queue")
    if producer.flush(CALL_SECONDS):
        raise TimeoutError(f"{topic}: messages were not acknowledged within {CALL_SECONDS} s")
    return time.perf_counter() - started


def transactional_seconds(
    bootstrap: str, topic: str, value_bytes: int, transactions: int, messages_each: int, warm_up: int = 0
) -> float:
    """Transactions one after the other, from the first begin to the last commit; those of the warm-up not counted."""
    # Delivery is not waited for at the end of a linger: a commit sends at once what is there.
    config = {**PRODUCER, "acks": "all", "transactional.id": topic}
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    producer.init_transactions(CALL_SECONDS)
    messages = [{"value": bytes(value_bytes)}] * messages_each
    started = time.perf_counter()
    for number in range(warm_up + transactions):
        if number == warm_up:
            started = time.perf_counter()
        producer.begin_transaction()
        if producer.produce_batch(topic, messages, partition=0) != messages_each:
            raise BufferError(f"{topic}: librdkafka did not take all messages into its queue")
        producer.commit_transaction(CALL_SECONDS)
    return time.perf_counter() - started


def produce_together_seconds(
    bootstrap: str, topic: str, value_bytes: int, count: int, producers: int, partitions: int, is_idempotent: bool
) -> float:
    """Several producers at a time, each to all partitions in turn: until the last message is acknowledged."""
    safety = {"acks": "all", "enable.idempotence": True} if is_idempotent else {}
    clients = [Producer({"bootstrap.servers": bootstrap, **PRODUCER, **safety}) for _ in range(producers)]
    for client in clients:
        client.list_topics(topic, CALL_SECONDS)
    messages = [{"value": bytes(value_bytes)}] * BATCH_MESSAGES
    started = time.perf_counter()
    for number, begin in enumerate(range(0, count, BATCH_MESSAGES)):
        turn, who = divmod(number, producers)
        some = messages[: count - begin]
        if clients[who].produce_batch(topic, some, partition=(turn + who) % partitions) != len(some):
            raise BufferError(f"{topic}: librdkafka did not take all messages into its queue")
    for client in clients:
        if client.flush(CALL_SECONDS):
            raise TimeoutError(f"{topic}: messages were not acknowledged within {CALL_SECONDS} s")
    return time.perf_counter() - started


def idempotent_seconds(bootstrap: str, topic: str, value_bytes: int, flushes: int, messages_each: int) -> float:
    """The same without transactions: as many messages at a time, each time acknowledged before the next."""
    producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER, "acks": "all", "enable.idempotence": True})
    producer.list_topics(topic, CALL_SECONDS)
    messages = [{"value": bytes(value_bytes)}] * messages_each
    started = time.perf_counter()
    for _ in range(flushes):
        if producer.produce_batch(topic, messages, partition=0) != messages_each:
            raise BufferError(f"{topic}: librdkafka did not take all messages into its queue")
        if producer.flush(CALL_SECONDS):
            raise TimeoutError(f"{topic}: messages were not acknowledged within {CALL_SECONDS} s")
    return time.perf_counter() - started


def consume_seconds(bootstrap: str, topic: str, count: int, passes: int, security: Mapping[str, str] = _PLAIN) -> float:
    """Read that many messages so many times, each time by a consumer of its own: from its first message to its last."""
    return sum(_consume_once(bootstrap, topic, count, security) for _ in range(passes))


def _consume_once(bootstrap: str, topic: str, count: int, security: Mapping[str, str]) -> float:
    consumer = Consumer({"bootstrap.servers": bootstrap, **CONSUMER, **security})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        seen = _consume(consumer, topic, 1)
        started = time.perf_counter()
        while seen < count:
            seen += _consume(consumer, topic, count - seen)
        return time.perf_counter() - started
    finally:
        consumer.close()


def _consume(consumer: Consumer, topic: str, at_most: int) -> int:
    messages = consumer.consume(min(BATCH_MESSAGES, at_most), CALL_SECONDS)
    if not messages:
        raise TimeoutError(f"{topic}: {at_most} messages did not come within {CALL_SECONDS} s")
    if error := messages[-1].error():
        raise KafkaException(error)
    return len(messages)


def one_at_a_time_ms(
    bootstrap: str, topic: str, count: int, warm_up: int = LATENCY_WARM_UP, value_bytes: int = 100, partition: int = 0
) -> list[float]:
    """Latencies, ascending, of messages each of which is sent when the one before it was acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    latencies_ms = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            raise KafkaException(error)

    for number in range(warm_up + count):
        started = time.perf_counter()
        producer.produce(topic, bytes(value_bytes), partition=partition, on_delivery=delivered)
        if producer.flush(CALL_SECONDS):
            raise TimeoutError(f"{topic}: a message was not acknowledged within {CALL_SECONDS} s")
        if number >= warm_up:
            latencies_ms.append((time.perf_counter() - started) * 1000)
    return sorted(latencies_ms)
