"""A client that changes the settings of topics again and again, while they are written. Must not know brokers.

Of topics of which others were promised something it changes what breaks no promise: how many replicas must have a
record, and when it is synced. A topic of its own may also lose records: by an unclean election, by retention, by
another cleanup policy. It remembers what it has asked for: in the end a setting has one of these values everywhere.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from lamina.errors import ErrorCode, InvalidReplicationFactor, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.target import AnyBroker, Controller
from lamina.records.record import Record, build_batch
from tests.simulation.clients import Admin, PlainProducer, Surroundings

DOUBTFUL = "doubtful"
"""The topic of which nobody was promised anything."""
_ALTER_CONFIGS = 44
_TOPIC, _SET, _DELETE = 2, 0, 1
_SLOWEST_S = 0.6
_NO_VALUE = ""
"""Back to the default."""
_HARMLESS: Mapping[str, Sequence[str]] = {
    "min.insync.replicas": ("1", "2", "3", _NO_VALUE),
    "flush.messages": ("1", _NO_VALUE),
    "unclean.leader.election.enable": ("false", _NO_VALUE),
}
_HARMFUL: Mapping[str, Sequence[str]] = {
    "min.insync.replicas": ("1", "2", "3", _NO_VALUE),
    "unclean.leader.election.enable": ("true", "true", "false"),
    "cleanup.policy": ("delete", "compact", "compact,delete", _NO_VALUE),
    "retention.ms": ("100", "60000", "-1", _NO_VALUE),
    "retention.bytes": ("300", "-1", _NO_VALUE),
    "delete.retention.ms": ("0", _NO_VALUE),
}

Configs = Mapping[str, Mapping[str, str]]
"""Of topics, what is set on each."""


class Configurer(Admin):
    def __init__(self, name: str, around: Surroundings, connector: Connector, topics: Sequence[str]) -> None:
        """``topics`` are those of which others were promised something."""
        super().__init__(name, around, connector)
        self._topics = topics
        self._is_created = False
        self._wanted: dict[tuple[str, str], set[str]] = {}
        """What each setting may be in the end: a request that was not answered may be carried out much later."""

    async def step(self) -> bool:
        try:
            if not self._is_created:
                await self.create_topics({DOUBTFUL: 1})
                self._is_created = True
            if self.is_finishing:
                return True
            await self._alter_some()
        except InvalidReplicationFactor as error:
            # Its topic cannot be created while too few brokers are registered.
            self.tell(f"create {DOUBTFUL}: {error}")
        except KafkaError as error:
            self.failed("alter configs", error)
        await asyncio.sleep(self.rng.uniform(0.0, _SLOWEST_S))
        return False

    async def _alter_some(self) -> None:
        topic = DOUBTFUL if self.rng.random() < 0.5 else self.rng.choice(self._topics)
        possible = _HARMFUL if topic == DOUBTFUL else _HARMLESS
        names = self.rng.sample(sorted(possible), self.rng.randint(1, 2))
        wanted = {name: self.rng.choice(possible[name]) for name in names}
        for name, value in wanted.items():
            self._wanted.setdefault((topic, name), {_NO_VALUE}).add(value)
        configs = [
            {"name": name, "config_operation": _SET if value else _DELETE, "value": value or None}
            for name, value in wanted.items()
        ]
        resource = {"resource_type": _TOPIC, "resource_name": topic, "configs": configs}
        call = MessageCall(
            _ALTER_CONFIGS, range(1, 2), timeout=timedelta(seconds=1), resources=[resource], validate_only=False
        )
        response = await self.cluster.request(self.rng.choice((AnyBroker(), Controller())), call)
        told = response.responses[0]
        if told.error_code:
            raise error_from_code(told.error_code, told.error_message or "IncrementalAlterConfigs")
        self.tell(f"{topic} has {wanted}: {ErrorCode(told.error_code).name}")

    def check(self, stored: Configs, followed: Mapping[int, Configs]) -> None:
        """After all has healed and come to an end: ``followed`` is what each broker goes by."""
        for topic in (DOUBTFUL, *self._topics):
            here = stored.get(topic, {})
            for name, value in here.items():
                if value not in self._wanted.get((topic, name), ()):
                    raise self.judge.violated(f"{name} of {topic} is {value}, and nobody asked for that")
            for broker_id, configs in followed.items():
                if configs.get(topic, {}) != here:
                    raise self.judge.violated(
                        f"{topic} has {here}, and broker {broker_id} goes by {configs.get(topic)}"
                    )


class DoubtfulProducer(PlainProducer):
    """With keys, because its topic may be a compacted one."""

    def batch(self, values: Sequence[bytes], **producer: Any) -> bytes:
        now_ms = self._clocks.now_ms()
        return bytes(build_batch([Record(n, now_ms, b"key", value) for n, value in enumerate(values)], **producer))
