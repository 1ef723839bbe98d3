"""What is measured of a cluster with many partitions, one phase after the other.

Owns the phases, their order and their bars. A time that somebody waits for counts from outside, from the request or the
fault until the last broker shows it. Must not know how figures are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from confluent_kafka import Producer

from bench.callbacks import Callback
from bench.timed_cluster import BROKERS, WAIT_SECONDS, SessionEnd, TimedCluster
from bench.usage import cpu_seconds, resident_bytes
from tests.broker.raw import batch_of, produce_request

CALLBACK_BAR_MS = 20.0
_CREATE_TOPICS, _DELETE_TOPICS, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = 19, 20, 32, 44
_TOPIC_RESOURCE, _SET = 2, 0
_CHANGES = 10


@dataclass(frozen=True, slots=True)
class Size:
    topics: int
    partitions: int
    """Of each topic."""
    idle_seconds: int

    @property
    def names(self) -> list[str]:
        return [f"topic-{number}" for number in range(self.topics)]


FULL = Size(topics=20, partitions=100, idle_seconds=20)
QUICK = Size(topics=2, partitions=30, idle_seconds=2)


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    value: float
    unit: str
    bar: float | None = None
    """The most that it may be, where something is promised."""


@dataclass(slots=True)
class Phase:
    name: str
    figures: list[Measured] = field(default_factory=list)
    callbacks: list[Callback] = field(default_factory=list)
    """The longest of all brokers that lived through it."""

    def add(self, name: str, value: float, unit: str = "s", bar: float | None = None) -> None:
        self.figures.append(Measured(name, value, unit, bar))


class PartitionTrials:
    def __init__(self, cluster: TimedCluster, size: Size) -> None:
        self._cluster = cluster
        self._size = size

    def phases(self) -> Iterator[Phase]:
        for name, run in (
            ("an empty cluster starts", self._start_empty),
            ("topics are created", self._create),
            ("a record to every partition", self._produce_to_all),
            ("nothing happens", self._idle),
            ("metadata changes", self._change),
            ("a broker dies", self._kill_other),
            ("it comes back", self._bring_back),
            ("the controller dies", self._kill_controller),
            ("it comes back", self._bring_back),
            ("all brokers restart", self._restart_all),
        ):
            phase = Phase(name)
            run(phase)
            phase.callbacks = self._cluster.longest_callbacks()
            yield phase

    # Starting

    def _start_empty(self, phase: Phase) -> None:
        began = self._cluster.up()
        phase.add("until clients can connect", time.monotonic() - began)

    def _restart_all(self, phase: Phase) -> None:
        self._cluster.disconnect()
        began = time.monotonic()
        self._cluster.local.stop()
        phase.add("stopped cleanly after", time.monotonic() - began)
        began = self._cluster.up()
        replicas = self._size.topics * self._size.partitions * len(BROKERS)
        led = self._cluster.when_topics(self._size.names, lambda partition: partition.leader_id >= 0)
        phase.add(f"until all have leaders, {replicas:,} replicas", led - began, bar=10)
        full = self._cluster.when_topics(self._size.names, _is_full)
        phase.add("until all are in sync", full - began)

    # Many partitions

    def _create(self, phase: Phase) -> None:
        size = self._size
        each = []
        for name in size.names:
            began = time.monotonic()
            self._create_topic(name, size.partitions)
            each.append(time.monotonic() - began)
        phase.add(f"{size.topics * size.partitions:,} partitions on {len(BROKERS)} brokers", sum(each))
        phase.add(f"the slowest topic of {size.partitions} partitions", max(each))

    def _create_topic(self, name: str, partitions: int) -> None:
        (told,) = self._cluster.ask(
            BROKERS[0],
            _CREATE_TOPICS,
            7,
            topics=[
                {
                    "name": name,
                    "num_partitions": partitions,
                    "replication_factor": len(BROKERS),
                    "assignments": (),
                    "configs": (),
                }
            ],
            timeout=WAIT_SECONDS * 1000,
            validate_only=False,
        ).topics
        if told.error_code:
            raise RuntimeError(f"{name} was not created: {told.error_message}")

    def _produce_to_all(self, phase: Phase) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.local.bootstrap_servers(), "acks": "all"})
        for name in self._size.names:
            producer.produce(name, b"", partition=0)
        producer.flush(WAIT_SECONDS)
        began = time.monotonic()
        for name in self._size.names:
            for partition in range(self._size.partitions):
                producer.produce(name, bytes(100), partition=partition)
        if producer.flush(WAIT_SECONDS):
            raise TimeoutError("records were not acknowledged")
        phase.add("all acknowledged by all replicas", time.monotonic() - began)

    def _idle(self, phase: Phase) -> None:
        process_ids = self._cluster.process_ids()
        before = {broker_id: cpu_seconds(process_id) for broker_id, process_id in process_ids.items()}
        time.sleep(self._size.idle_seconds)
        for broker_id, process_id in process_ids.items():
            used = (cpu_seconds(process_id) - before[broker_id]) / self._size.idle_seconds
            phase.add(f"CPU of broker {broker_id}", 100 * used, "%")
        for broker_id, process_id in process_ids.items():
            phase.add(f"memory of broker {broker_id}", resident_bytes(process_id) / 1e6, "MB")

    # Changes

    def _change(self, phase: Phase) -> None:
        trials: dict[str, Callable[[str], float]] = {
            "a topic created": self._when_created,
            "a config altered": self._when_altered,
            "a new topic's first record acknowledged by all": self._when_written,
        }
        for what, measure in trials.items():
            ms = [1000 * measure(f"change-{number}") for number in range(_CHANGES)]
            bar = None if "record" in what else 200
            phase.add(f"{what}, median", median(ms), "ms", bar)
            phase.add(f"{what}, worst", max(ms), "ms", bar)

    def _when_created(self, name: str) -> float:
        """Until every broker tells of it."""
        began = time.monotonic()
        self._create_topic(name, 3)
        return self._cluster.when_topics([name], lambda partition: partition.leader_id >= 0) - began

    def _when_altered(self, name: str) -> float:
        value = str(time.monotonic_ns() // 1_000_000)

        def is_seen(broker_id: int) -> bool:
            asked = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": ("retention.ms",)}
            (told,) = self._cluster.ask(broker_id, _DESCRIBE_CONFIGS, 4, resources=[asked]).results
            return bool(told.configs) and told.configs[0].value == value

        began = time.monotonic()
        self._cluster.ask(
            BROKERS[0],
            _ALTER_CONFIGS,
            1,
            resources=[
                {
                    "resource_type": _TOPIC_RESOURCE,
                    "resource_name": name,
                    "configs": [{"name": "retention.ms", "config_operation": _SET, "value": value}],
                }
            ],
            validate_only=False,
        )
        return self._cluster.when_seen(is_seen) - began

    def _when_written(self, name: str) -> float:
        """From the response of CreateTopics on, with nobody in between."""
        name = f"{name}-written"
        self._create_topic(name, 1)
        began = time.monotonic()
        (topic,) = self._cluster.metadata(BROKERS[0], name).topics
        request = produce_request(name, batch_of((None, b"first"), now_ms=0))
        told = self._cluster.ask_with(topic.partitions[0].leader_id, request)
        error = told.responses[0].partition_responses[0].error_code
        if error:
            raise RuntimeError(f"the first record of {name} was refused with error {error}")
        return time.monotonic() - began

    # Faults

    def _kill_other(self, phase: Phase) -> None:
        controller = self._cluster.metadata(BROKERS[0]).controller_id
        self._kill(phase, next(one for one in BROKERS if one != controller))

    def _kill_controller(self, phase: Phase) -> None:
        self._kill(phase, int(self._cluster.metadata(BROKERS[0]).controller_id))

    def _kill(self, phase: Phase, broker_id: int) -> None:
        cluster, others = self._cluster, [one for one in BROKERS if one != broker_id]
        self._dead = broker_id
        with SessionEnd(cluster.local.zookeeper_address(), broker_id) as session_end:
            began = time.monotonic()
            cluster.disconnect(broker_id)
            cluster.local.kill_broker(broker_id)
            ended = session_end.wait()
        moved = cluster.when_topics(
            self._size.names, lambda partition: partition.leader_id not in (-1, broker_id), others
        )
        phase.add("until its session ends", ended - began)
        phase.add("from then on until all its leaders have moved", moved - ended, bar=2)

    def _bring_back(self, phase: Phase) -> None:
        began = time.monotonic()
        self._cluster.local.restart_broker(self._dead)
        phase.add("until clients can connect", time.monotonic() - began)
        full = self._cluster.when_topics(self._size.names, _is_full)
        phase.add("until its replicas are in sync", full - began)


def _is_full(partition: object) -> bool:
    return len(partition.isr_nodes) == len(BROKERS)  # type: ignore[attr-defined]
