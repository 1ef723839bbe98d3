"""A producer: batches to many partitions, each once and in order, up to some requests in flight to each leader.

Owns who leads what, what is in flight to whom, and how many bytes are held. One request takes a batch of each of
several partitions. The first delivery that fails for good fails everything: with a transaction nothing of it will be
seen, and without one the caller must know. Must not know what is inside a batch, nor when a transaction ends.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from lamina.errors import (
    ErrorCode,
    KafkaError,
    LeaderNotAvailable,
    MalformedResponse,
    UnknownTopicOrPartition,
    error_from_code,
)
from lamina.peer.cluster import ClusterClient
from lamina.peer.producing import ACKS_ALL, ProduceCall
from lamina.peer.retries import Backoff
from lamina.peer.target import Broker
from lamina.peer.view import NO_LEADER
from lamina.producing.errors import DeliveryFailed
from lamina.producing.outbox import Outbox, Outgoing
from lamina.records.batch import Buffer
from lamina.topic_partition import TopicPartition
from lamina.wire.produce import PartitionRecords, ProduceRequest, TopicRecords

_IN_FLIGHT: Final = 5
"""Requests to one leader; a broker serves one connection's requests one after the other."""
_CLASSIC, _JOINING = range(3, 12), range(12, 13)
"""From the second on, Produce alone makes a partition part of the transaction (KIP-890)."""


class Batch(NamedTuple):
    """One record batch, stamped with its producer and its sequence."""

    topic: str
    partition: int
    records: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    delivery_timeout_ms: int = 120_000
    """``delivery.timeout.ms``: from when there is memory for a batch to its acknowledgement."""
    request_timeout_ms: int = 30_000
    max_request_bytes: int = 4 * 1024 * 1024
    """``max.request.size``: of all batches in one request, unless one alone is larger."""
    buffer_bytes: int = 32 * 1024 * 1024
    """``buffer.memory``: what is not acknowledged yet."""
    acks: int = ACKS_ALL


class BatchProducer:
    """To be used on one event loop; `flush` or `stop` comes last."""

    def __init__(
        self,
        cluster: ClusterClient,
        backoff: Backoff,
        limits: DeliveryLimits,
        transactional_id: str | None = None,
        *,
        joins_by_produce: bool = False,
    ) -> None:
        self._cluster = cluster
        self._backoff = backoff
        self._limits = limits
        self._transactional_id = transactional_id
        self._versions = _JOINING if joins_by_produce else _CLASSIC
        self._loop = asyncio.get_running_loop()
        self._outboxes: dict[TopicPartition, Outbox] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._not_before: dict[TopicPartition, float] = {}
        """When a partition whose last attempt failed is tried again."""
        self._in_flight: dict[int, int] = {}
        """Requests, by leader."""
        self._too_large: dict[str, int] = {}
        """By topic, the bytes of the smallest batch that was refused for them."""
        self._held_bytes = 0
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        """Set when bytes went out, or all is over."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lookup: asyncio.Task[None] | None = None

    # What callers do

    async def send(self, batches: Iterable[Batch]) -> None:
        """Hand in batches, in the order of their sequences. Waits while too many bytes are held."""
        for batch in batches:
            await self._until(lambda: self._held_bytes < self._limits.buffer_bytes)
            due = self._loop.time() + self._limits.delivery_timeout_ms / 1000
            key = (batch.topic, batch.partition)
            self._outboxes.setdefault(key, Outbox()).add(Outgoing(batch.data, batch.records, due))
            self._held_bytes += len(batch.data)
            self._pump()

    async def flush(self) -> None:
        """Wait until all is acknowledged. Raises `DeliveryFailed`."""
        await self._until(lambda: self._held_bytes == 0)

    async def stop(self) -> None:
        """Send nothing more; what is in flight is left to its fate."""
        self._fail(asyncio.CancelledError())
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _until(self, condition: Any) -> None:
        while self._failure is None and not condition():
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure

    # Sending

    def _pump(self) -> None:
        """Send all that may go now."""
        if self._failure is not None:
            return
        now = self._loop.time()
        sendable: dict[int, list[TopicPartition]] = {}
        wake_at: float | None = None
        for key, outbox in self._outboxes.items():
            if outbox.peek() is None:
                continue
            not_before = self._not_before.get(key, 0.0)
            if not_before > now:
                wake_at = not_before if wake_at is None else min(wake_at, not_before)
                continue
            leader = self._leaders.get(key)
            if leader is None:
                self._look_up()
                continue
            sendable.setdefault(leader, []).append(key)
        for leader, keys in sendable.items():
            while self._in_flight.get(leader, 0) < _IN_FLIGHT and (chosen := self._take(keys)):
                self._in_flight[leader] = self._in_flight.get(leader, 0) + 1
                self._start(self._send(leader, chosen))
        self._wake(wake_at)

    def _wake(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if at is None else self._loop.call_at(at, self._pump)

    def _take(self, keys: list[TopicPartition]) -> dict[TopicPartition, Outgoing]:
        """One batch of each partition, as many as one request may hold."""
        chosen: dict[TopicPartition, Outgoing] = {}
        size = 0
        for key in keys:
            outbox = self._outboxes[key]
            if key[0] in self._too_large:
                self._held_bytes += outbox.split(self._too_large[key[0]])
            batch = outbox.peek()
            if batch is None or (chosen and size + len(batch.data) > self._limits.max_request_bytes):
                continue
            chosen[key] = outbox.take()
            size += len(batch.data)
        if chosen and len(keys) > 1:
            # Those that were left out come first in the next request.
            keys.sort(key=lambda key: key in chosen)
        return chosen

    def _start(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, Exception) else RuntimeError(str(error)))

    async def _send(self, leader: int, chosen: Mapping[TopicPartition, Outgoing]) -> None:
        try:
            response = await self._cluster.send_once(Broker(leader), self._call(chosen))
            results = _results(response)
        except KafkaError as error:
            results = dict.fromkeys(chosen, error)
        finally:
            self._in_flight[leader] -= 1
        missing = MalformedResponse(f"broker {leader} did not answer for all partitions that it was sent")
        for key, batch in chosen.items():
            self._came_back(key, batch, results.get(key, missing))
        self._changed.set()
        self._pump()

    def _call(self, chosen: Mapping[TopicPartition, Outgoing]) -> ProduceCall:
        topics: dict[str, list[PartitionRecords]] = {}
        for (topic, partition), batch in chosen.items():
            topics.setdefault(topic, []).append(PartitionRecords(partition, memoryview(batch.data)))
        request = ProduceRequest(
            self._transactional_id,
            self._limits.acks,
            self._limits.request_timeout_ms,
            [TopicRecords(topic, None, partitions) for topic, partitions in topics.items()],
        )
        return ProduceCall(request, self._versions)

    def _came_back(self, key: TopicPartition, batch: Outgoing, error: KafkaError | None) -> None:
        outbox = self._outboxes[key]
        if error is None:
            outbox.acknowledged(batch)
            self._held_bytes -= len(batch.data)
            return
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:
            size = len(batch.data)
            self._too_large[key[0]] = min(size, self._too_large.get(key[0], size))
        try:
            if outbox.failed(batch, error, self._loop.time()):
                self._held_bytes -= len(batch.data)
                return
        except KafkaError as final:
            self._fail(DeliveryFailed(*key, batch.records, final))
            return
        self._leaders.pop(key, None)
        self._cluster.forget_leaders(key[0])
        self._not_before[key] = self._loop.time() + self._backoff.wait_ms(outbox.attempt) / 1000

    # Leaders

    def _look_up(self) -> None:
        if self._lookup is None:
            self._lookup = self._start(self._find_leaders())

    async def _find_leaders(self) -> None:
        """Of all partitions that have something to send. What has none now is asked for again a little later."""
        wanted = [key for key, outbox in self._outboxes.items() if key not in self._leaders and not outbox.is_empty]
        try:
            for topic in dict.fromkeys(topic for topic, _ in wanted):
                try:
                    leaders = await self._cluster.leaders(topic)
                except KafkaError as error:
                    self._fail(DeliveryFailed(topic, _first(wanted, topic), 0, error))
                    return
                for key in wanted:
                    if key[0] == topic:
                        self._lead(key, leaders)
        finally:
            self._lookup = None
        self._pump()

    def _lead(self, key: TopicPartition, leaders: Mapping[int, int]) -> None:
        leader = leaders.get(key[1])
        if leader is not None and leader != NO_LEADER:
            self._leaders[key] = leader
            return
        error: KafkaError = LeaderNotAvailable("it has no leader now")
        if leader is None:
            error = UnknownTopicOrPartition("there is no such partition")
        head = self._outboxes[key].peek()
        if leader is None or (head is not None and self._loop.time() >= head.due):
            self._fail(DeliveryFailed(*key, 0 if head is None else head.records, error))
            return
        self._cluster.forget_leaders(key[0])
        self._not_before[key] = self._loop.time() + self._backoff.wait_ms(1) / 1000

    # The end

    def _fail(self, error: BaseException) -> None:
        """The first reason holds."""
        if self._failure is None:
            self._failure = error if isinstance(error, Exception) else _Stopped()
        self._wake(None)
        self._changed.set()


class _Stopped(Exception):
    """Nothing more is sent."""


def _first(wanted: Iterable[TopicPartition], topic: str) -> int:
    return min(partition for name, partition in wanted if name == topic)


def _results(response: Any) -> dict[TopicPartition, KafkaError | None]:
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.responses:
        for one in topic.partition_responses:
            reason = getattr(one, "error_message", None) or "the broker refused them"
            error = error_from_code(one.error_code, reason.rstrip(".")) if one.error_code else None
            found[topic.name, int(one.index)] = error
    return found
