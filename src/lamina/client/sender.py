"""Sending records to a topic: many on their way at once, in bounded memory, each accounted for.

Owns the producer's configuration. A record is known by the number that its caller gives it. Must not know any command,
or where the records come from.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from lamina.client.cluster import Cluster
from lamina.client.deliveries import Deliveries
from lamina.client.errors import ClientError, sentence
from lamina.client.latencies import Latencies

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

Headers = list[tuple[str, str | bytes | None]]

ANY_PARTITION = -1
NOW = 0
DEFAULT_MAX_MESSAGE_BYTES = 1_000_000
"""librdkafka's own, for when a topic's limit is not known."""
_LEAST_MAX_MESSAGE_BYTES, _MOST_MAX_MESSAGE_BYTES = 1_000, 1_000_000_000
_QUEUE_KB = 131_072
_POLL_EVERY = 1_024
_WAIT_SECONDS = 0.1
_USUAL_TIMEOUT_MS = 300_000
"""librdkafka's own."""
_TOO_LATE, _LATE_SECONDS = "_MSG_TIMED_OUT", 3.0
_METADATA_REQUESTS, _METADATA_SECONDS = 2, 1.0


def producer_config(
    cluster: Cluster,
    *,
    max_message_bytes: int | None,
    timeout_seconds: float,
    acks: str | None,
    compression: str | None,
    idempotent: bool | None,
) -> dict[str, Any]:
    """What the command line gives wins over the properties; idempotent unless something speaks against it."""
    config: dict[str, Any] = {
        "allow.auto.create.topics": False,
        "message.timeout.ms": int(timeout_seconds * 1000),
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": _QUEUE_KB,
    }
    if max_message_bytes is not None:
        # Also bounds the batches, which the topic would refuse beyond it.
        limit = min(max(max_message_bytes, _LEAST_MAX_MESSAGE_BYTES), _MOST_MAX_MESSAGE_BYTES)
        config["message.max.bytes"] = limit
        config["batch.size"] = min(limit, DEFAULT_MAX_MESSAGE_BYTES)
        config["queue.buffering.max.kbytes"] = max(_QUEUE_KB, 2 * limit // 1024)
    if acks is not None:
        config["acks"] = acks
    if compression is not None:
        config["compression.type"] = compression
    if cluster.given("partitioner") is None:
        # As Java's clients choose, so that a key has one partition whichever client sends it.
        config["partitioner"] = "murmur2_random"
    if idempotent is None and cluster.given("enable.idempotence") is None:
        idempotent = (acks or cluster.given("acks", "request.required.acks") or "all") in ("all", "-1")
    if idempotent is not None:
        config["enable.idempotence"] = idempotent
    return config


class Sender:
    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        config: dict[str, Any],
        latencies: Latencies | None = None,
        min_in_sync: int | None = None,
    ) -> None:
        """With ``latencies`` the time from sending to delivery is counted there.

        ``min_in_sync`` is how many replicas must have a record, where the producer waits for that.
        """
        from confluent_kafka import KafkaException

        self.deliveries = Deliveries()
        self._refusal = KafkaException
        self._producer = cluster.producer(config)
        self._topic = topic
        self._timeout_seconds = config.get("message.timeout.ms", _USUAL_TIMEOUT_MS) / 1000
        self._min_in_sync = min_in_sync
        if config.get("enable.idempotence"):
            self._hasten_producer_id()
        self._report = self._delivered if latencies is None else self._delivered_after
        self._latencies = latencies

    def _hasten_producer_id(self) -> None:
        """Spare the first record half a second.

        librdkafka asks for the id when it learns of the brokers. None of them is connected then, so it tries again half
        a second later, or at the next metadata response. The first request here makes it learn of them, the second one
        needs a connection and comes back after it is up.
        """
        for _ in range(_METADATA_REQUESTS):
            try:
                self._producer.list_topics(self._topic, timeout=_METADATA_SECONDS)
            except self._refusal:
                # Nothing is lost but time: what is wrong, the first delivery report says.
                return

    def send(
        self,
        number: int,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int = ANY_PARTITION,
        timestamp_ms: int = NOW,
    ) -> None:
        """Waits while too much is on its way. Look at ``deliveries`` for what failed."""
        size_bytes = (len(value) if value is not None else 0) + (len(key) if key is not None else 0)
        report = partial(self._report, number, size_bytes)
        deliveries = self.deliveries
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition,
                    on_delivery=report,
                    timestamp=timestamp_ms,
                    headers=headers,
                )
                break
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
            except self._refusal as error:
                deliveries.fail(number, sentence(error.args[0]).removeprefix("unable to produce message: "))
                return
        deliveries.sent += 1
        if not deliveries.sent % _POLL_EVERY:
            self._producer.poll(0)

    def warm_up(self, value: bytes) -> None:
        """Send one record that is not accounted for: connections stand then, and an idempotent producer has its id."""
        failures: list[str] = []

        def note(error: "KafkaError | None", _: "Message") -> None:
            if error is not None:
                failures.append(sentence(error))

        try:
            self._producer.produce(self._topic, value, on_delivery=note)
        except self._refusal as error:
            failures.append(sentence(error.args[0]))
        self._producer.flush()
        if failures:
            raise ClientError(f"the first record was not delivered: {failures[0]}")

    def serve(self, seconds: float = 0) -> None:
        """Hear what was delivered meanwhile; may return early."""
        self._producer.poll(seconds)

    def finish(self, tick: Callable[[], None]) -> None:
        """Until all that was sent is delivered or given up, which the timeout bounds."""
        while self._producer.flush(_WAIT_SECONDS):
            tick()
        partition = self.deliveries.late_partition
        if partition is not None:
            self.deliveries.explain(f"it took longer than {self._timeout_seconds:g} s; {self._why_late(partition)}")

    def _why_late(self, partition: int) -> str:
        """librdkafka tries again until the time is over, and does not tell what it was refused for."""
        try:
            told = self._producer.list_topics(self._topic, timeout=_LATE_SECONDS).topics[self._topic].partitions
        except self._refusal:
            return "no broker answers now"
        for number, one in sorted(told.items()):
            if partition not in (number, ANY_PARTITION):
                continue
            name = f"{self._topic}-{number}"
            if one.leader < 0:
                return f"{name} has no leader"
            if self._min_in_sync is not None and len(one.isrs) < self._min_in_sync:
                replicas = "1 replica" if len(one.isrs) == 1 else f"{len(one.isrs)} replicas"
                return f"{name} has {replicas} in sync and min.insync.replicas is {self._min_in_sync}"
        return f"`lamina topics describe {self._topic}` shows who leads and who is in sync"

    def abandon(self) -> None:
        """Forget what was not delivered yet."""
        self._producer.purge()

    def _delivered(self, number: int, size_bytes: int, error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            self.deliveries.arrive(size_bytes, message.partition(), message.offset())  # type: ignore[arg-type]
        else:
            is_late = error.name() == _TOO_LATE
            partition = message.partition()
            late_partition = ANY_PARTITION if partition is None else partition
            self.deliveries.fail(number, sentence(error), late_partition if is_late else None)

    def _delivered_after(self, number: int, size_bytes: int, error: "KafkaError | None", message: "Message") -> None:
        latency = message.latency()
        if error is None and latency is not None and self._latencies is not None:
            self._latencies.add(latency)
        self._delivered(number, size_bytes, error, message)
