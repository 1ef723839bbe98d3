"""Kafka's own verifiable producer and consumer beside ours, and what they said as a part of the history.

Owns their processes. Must not know what is done to brokers.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

from lamina.clocks import SYSTEM_CLOCKS
from tests.cluster.faults.story import Story
from tests.cluster.faults.tool_events import moves_of, sent_back, unacknowledged
from tests.history.events import Assigned, Read, Send, SendOutcome
from tests.peers.tool_process import Event, ToolProcess

PER_SECOND = 100
VALUE_PREFIX = "7"
"""Ours begin with no number and a point."""
_PRODUCER = "retries=2147483647\nenable.idempotence=true\ndelivery.timeout.ms=300000\nrequest.timeout.ms=5000\n"
_CONSUMER = "isolation.level=read_committed\n"
_CLOCK_STEP_MS = 1.0
"""What a tool says in whole milliseconds was that much later, at most."""


class _Client:
    """As a context, from when it works."""

    def __init__(self, name: str, main_class: str, story: Story, config: str, *arguments: str) -> None:
        self.name = name
        path: Path = story.directory / f"{name.replace(' ', '-')}.properties"
        path.write_text(config)
        self._story = story
        self._epoch_ms = SYSTEM_CLOCKS.now_ms() - story.now_ms()
        option = "--producer.config" if config is _PRODUCER else "--consumer.config"
        self._tool = ToolProcess(f"org.apache.kafka.tools.{main_class}", *arguments, option, str(path))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tool.__exit__(kind, error, trace)

    def _at_ms(self, event: Event) -> float:
        return float(event["timestamp"] - self._epoch_ms + _CLOCK_STEP_MS)


class KafkaProducer(_Client):
    """Idempotent, to all partitions."""

    def __init__(self, bootstrap: str, topic: str, story: Story) -> None:
        where = ("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1")
        # Keys spread records evenly.
        how = ("--throughput", str(PER_SECOND), "--value-prefix", VALUE_PREFIX, "--repeating-keys", "60")
        super().__init__(f"Kafka's producer of {topic}", "VerifiableProducer", story, _PRODUCER, *where, *how)
        self._topic = topic

    def __enter__(self) -> "KafkaProducer":
        self._tool.__enter__()
        self._tool.await_named("producer_send_success", 1)
        return self

    def stop(self) -> None:
        """Every record was acknowledged."""
        self._tool.stop()
        events = self._tool.events
        (summary,) = self._tool.named("tool_data")
        acked = len(self._tool.named("producer_send_success"))
        self._story.tell(f"{acked} of {summary['sent']} records of {self.name} were acknowledged")
        assert unacknowledged(events) == []

    @property
    def sends(self) -> list[Send]:
        """In the order of sending. When a record was sent is not said."""
        acked = self._tool.named("producer_send_success")
        in_order = sorted(acked, key=lambda event: int(str(event["value"]).partition(".")[2]))
        return [
            Send(
                self.name,
                (self._topic, event["partition"]),
                str(event["value"]).encode(),
                SendOutcome.ACKED,
                event["offset"],
                ended_ms=self._at_ms(event),
            )
            for event in in_order
        ]

    def latest_values(self) -> dict[bytes, bytes]:
        """Of each key."""
        acked = sorted(self._tool.named("producer_send_success"), key=lambda event: int(event["offset"]))
        return {str(event["key"]).encode(): str(event["value"]).encode() for event in acked}


class KafkaConsumer(_Client):
    """The one member of a group, that reads what is committed and commits after each poll."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        story: Story,
        protocol: str,
        read_as: Callable[[bytes], bytes] = bytes.rstrip,
    ) -> None:
        """``read_as`` makes of a value what is looked for."""
        where = ("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", f"{topic}-{protocol}")
        how = ("--group-protocol", protocol, "--reset-policy", "earliest", "--verbose")
        super().__init__(f"Kafka's consumer of {topic}", "VerifiableConsumer", story, _CONSUMER, *where, *how)
        self._topic = topic
        self._read_as = read_as
        self._looked_at = 0
        self._read: set[bytes] = set()
        story.tell(f"{self.name} uses the {protocol} protocol")

    def __enter__(self) -> "KafkaConsumer":
        self._tool.__enter__()
        self._tool.await_named("partitions_assigned", 1)
        return self

    def has_read(self, values: Collection[bytes]) -> bool:
        events = self._tool.events[self._looked_at :]
        self._looked_at += len(events)
        self._read |= {
            self._read_as(str(event["value"]).encode()) for event in events if event["name"] == "record_data"
        }
        return self._read.issuperset(values)

    def stop(self) -> None:
        self._tool.stop()
        commits = [event["success"] for event in self._tool.named("offsets_committed")]
        self._story.tell(f"{self.name} committed {len(commits)} times, {commits.count(False)} of them in vain")
        assert sent_back(self._tool.events) == []

    @property
    def moves(self) -> list[Assigned | Read]:
        return moves_of(self.name, self._tool.events, self._at_ms)
