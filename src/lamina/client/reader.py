"""Reading ranges of a topic's partitions to their ends, without a group.

Owns the consumer: what it is told, when it has come to an end, and how long silence is borne. Records come in batches,
those of one partition in order. Must not know any command, or what the records are for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, sentence
from lamina.client.partition_range import PartitionRange
from lamina.clocks import SYSTEM_CLOCKS, Clocks

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_BATCH_RECORDS = 10_000
_POLL_SECONDS = 0.2
_PROBE_SECONDS = 2.0
_LOOK_SECONDS = 2.0
"""Of silence, after which the topic is looked for again."""
_TRANSIENT = frozenset(
    {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MAX_POLL_EXCEEDED"}
)
"""What librdkafka tells of and goes on trying by itself."""


class Reader:
    _is_in_group = False

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        ranges: Sequence[PartitionRange],
        *,
        read_committed: bool,
        follow: bool,
        silence_seconds: float,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._clocks = clocks
        self.ranges = ranges
        self._cluster = cluster
        self._topic = topic
        self._read_committed = read_committed
        self._follow = follow
        self._silence_seconds = silence_seconds

    def batches(self, is_stopped: Callable[[], bool], limit: int | None = None) -> Iterator[list["Message"]]:
        """Until every range is read, ``limit`` records were given, or ``is_stopped``. Lists may be empty.

        Raises ClientError for what the cluster refuses, Unreachable when it is gone for too long.
        """
        from confluent_kafka import TopicPartition

        self._open = {each.partition: each for each in self.ranges if not each.is_done}
        self._left = limit
        self._failure: ClientError | None = None
        if not self._open or limit == 0:
            return
        self._consumer = self._cluster.consumer({**self._config(), "max.poll.interval.ms": 86_400_000})
        try:
            self._consumer.assign([TopicPartition(self._topic, each.partition, each.start) for each in self.ranges])
            if len(self._open) < len(self.ranges):
                self._rest(each.partition for each in self.ranges if each.is_done)
            yield from self._until_done(is_stopped)
        finally:
            self._consumer.close()

    def _config(self) -> dict[str, Any]:
        return {
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if self._read_committed else "read_uncommitted",
            "check.crcs": True,
            "queued.min.messages": 200_000,
            "fetch.queue.backoff.ms": 5,
        }

    def _is_at_end(self) -> bool:
        return not self._open

    def _given_out(self) -> None:
        """The records that were returned have been processed."""

    def _until_done(self, is_stopped: Callable[[], bool]) -> Iterator[list["Message"]]:
        heard = self._looked = self._clocks.monotonic_seconds()
        while not self._is_at_end() and self._left != 0 and not is_stopped():
            first = self._consumer.poll(_POLL_SECONDS)
            if first is None:
                heard = self._bear_silence(heard)
                yield []
                continue
            taken = self._take(self._next_batch(first))
            if taken:
                self._cluster.forget_errors()
            heard = self._clocks.monotonic_seconds()
            yield taken
            self._given_out()
            if self._failure is not None:
                raise self._failure

    def _next_batch(self, first: "Message") -> list["Message"]:
        return [first, *self._consumer.consume(_BATCH_RECORDS, 0)]

    def _take(self, messages: list["Message"]) -> list["Message"]:
        """Those that belong to the ranges; what came before a failure is given out first."""
        taken: list[Message] = []
        try:
            self._sort(messages, taken)
        except ClientError as error:
            self._failure = error
        return taken

    def _sort(self, messages: list["Message"], taken: list["Message"]) -> None:
        still_open = self._open
        for message in messages:
            error = message.error()
            if error is not None:
                self._notice(error, message)
                continue
            partition = message.partition()
            each = still_open.get(partition)  # type: ignore[arg-type]
            if each is None:
                continue
            key = message.key()
            size_bytes = len(message) + (len(key) if key is not None else 0)
            if each.take(message.offset(), size_bytes):  # type: ignore[arg-type]
                taken.append(message)
                if self._left is not None:
                    self._left -= 1
                    if not self._left:
                        break
            if each.end is not None and each.position >= each.end:
                self._close(each)

    def _notice(self, error: "KafkaError", message: "Message") -> None:
        from confluent_kafka import KafkaError

        partition, offset = message.partition(), message.offset()
        each = None if partition is None else self._open.get(partition)
        if error.code() == KafkaError._PARTITION_EOF:
            if each is not None and offset is not None:
                each.reach(offset)
                if each.is_done:
                    self._close(each)
        elif error.name() not in _TRANSIENT and not self._is_of_no_group(error):
            where = "" if each is None else f"partition {partition} at offset {each.position}: "
            raise ClientError(f"{where}{self._said(error)}")

    def _said(self, error: "KafkaError") -> str:
        return sentence(error)

    def _is_of_no_group(self, error: "KafkaError") -> bool:
        """librdkafka asks for the coordinator of a group that nobody here is in; access rules may keep it secret."""
        return not self._is_in_group and error.name() == "GROUP_AUTHORIZATION_FAILED"

    def _close(self, each: PartitionRange) -> None:
        del self._open[each.partition]
        self._rest([each.partition])

    def _rest(self, partitions: "Iterator[int] | list[int]") -> None:
        from confluent_kafka import TopicPartition

        self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])

    def _bear_silence(self, heard: float) -> float:
        """When something was last heard; raises when that is too long ago, or the topic is gone."""
        now = self._clocks.monotonic_seconds()
        is_too_long = now - heard > self._silence_seconds
        if self._cluster.has_errors or now - self._looked > _LOOK_SECONDS:
            if not self._is_answered():
                if is_too_long:
                    raise self._cluster.unreachable()
                return heard
            self._cluster.forget_errors()
            self._looked = now
        if self._follow:
            return self._clocks.monotonic_seconds()
        if is_too_long:
            raise ClientError(
                f"nothing came for {self._silence_seconds:g} s from {self._awaited()}; look at the broker's log, "
                "or give a longer --timeout"
            )
        return heard

    def _awaited(self) -> str:
        places = (f"{each.partition} (at {each.position} of {each.end})" for each in self._open.values())
        return f"partition {', '.join(places)}"

    def _is_answered(self) -> bool:
        """Whether a broker answers; raises when it says that the topic cannot be read: librdkafka waits on."""
        from confluent_kafka import KafkaException

        try:
            metadata = self._consumer.list_topics(self._topic, timeout=min(_PROBE_SECONDS, self._silence_seconds))
        except KafkaException:
            return False
        error = metadata.topics[self._topic].error
        if error is not None and error.name() != "LEADER_NOT_AVAILABLE":
            raise ClientError(f"topic {self._topic}: {sentence(error)}")
        return True
