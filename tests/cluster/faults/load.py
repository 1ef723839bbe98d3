"""Clients that work while brokers are hurt: producers and consumers, ours and Kafka's, and a watcher of ends.

Each remembers what it was told. Owns what is right at last: everything was acknowledged, and nothing is wrong with what
the clients were told. Must not know what is done to brokers.
"""

from contextlib import ExitStack
from types import TracebackType

from tests.cluster.faults.kafka_clients import KafkaConsumer, KafkaProducer
from tests.cluster.faults.story import Story
from tests.cluster.three_brokers import ThreeBrokers
from tests.cluster.verifiable_consumer import EndWatcher, VerifiableConsumer, read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import history_of
from tests.history.events import History, Send

PER_SECOND = 1000
FINISH_SECONDS = 120.0


class Load:
    """As a context; what it found is judged at its end, unless the test failed before."""

    def __init__(
        self,
        brokers: ThreeBrokers,
        story: Story,
        topic: str,
        partitions: int,
        wanted: int,
        value_bytes: int,
        protocol: str,
    ) -> None:
        """``wanted``: so many records of our producer are acknowledged at last, at least.

        ``protocol`` is that of the group of Kafka's consumer.
        """
        bootstrap, now_ms = brokers.bootstrap, story.now_ms
        self.producer = VerifiableProducer(
            bootstrap,
            topic,
            partitions,
            f"producer of {topic}",
            now_ms,
            PER_SECOND,
            value_bytes,
            # By default it waits a minute for the answer of a broker that sleeps.
            socket_timeout_ms=5000,
        )
        self.consumer = VerifiableConsumer(
            bootstrap, topic, partitions, f"consumer of {topic}", now_ms, isolation="read_committed"
        )
        self.other_sends: list[Send] = []
        """Of whoever else writes to the topic."""
        self._ends = EndWatcher(bootstrap, topic, partitions, f"end watcher of {topic}", now_ms)
        self._kafka_producer = KafkaProducer(bootstrap, topic, story)
        self._kafka_consumer = KafkaConsumer(bootstrap, topic, story, protocol)
        self._brokers = brokers
        self._story = story
        self._topic = topic
        self._partitions = partitions
        self._wanted = wanted
        self._running = ExitStack()

    def __enter__(self) -> "Load":
        for client in (self._kafka_producer, self._kafka_consumer, self.consumer, self._ends, self.producer):
            self._running.enter_context(client)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._running.__exit__(kind, error, trace)
        if kind is None:
            self._story.judge(self._history())

    def _finish(self) -> None:
        self.producer.await_acked_in_all(self._wanted, FINISH_SECONDS)
        self.producer.stop()
        self._story.tell(
            f"{self.producer.acked_count} of {self.producer.sent} records were acknowledged; the longest wait was "
            f"{self.producer.longest_wait_seconds():.2f} s"
        )
        assert self.producer.errors == []
        assert self.producer.acked_count == self.producer.sent, "some records have no answer"
        self._kafka_producer.stop()
        self._brokers.await_in_sync(self._topic)
        last = self._last_values()
        self._story.within(
            FINISH_SECONDS,
            "our consumer read everything",
            lambda: last <= {read.value for read in self.consumer.reads},
        )
        self._story.within(
            FINISH_SECONDS, "Kafka's consumer read everything", lambda: self._kafka_consumer.has_read(last)
        )
        self._kafka_consumer.stop()

    def _last_values(self) -> set[bytes]:
        """Of each partition what either producer sent last."""
        return {
            value
            for sends in (self.producer.acked, self._kafka_producer.sends)
            for value in {send.partition: send.value for send in sends}.values()
        }

    def _history(self) -> History:
        history = history_of(
            [self.producer], [self.consumer], read_all(self._brokers.bootstrap, self._topic, self._partitions)
        )
        history.sends += [*self._kafka_producer.sends, *self.other_sends]
        history.moves += self._kafka_consumer.moves
        history.ends = self._ends.ends
        return history
