"""A cluster, as one client of it sees it: requests reach the broker that they are for, whichever that is today.

Owns the attempts at a call: an error that passes by itself is retried, after a back-off, until `api_timeout_ms` is
over; then, or at once for any other error, it is raised as the exception of its code. What was sent on a connection
that ended is sent again, so a call may be done twice: produce is "at least once", unless the batches carry a
producer's sequence. Must not know how a broker is found or connected to.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TypeVar
from uuid import UUID

from lamina.errors import InconsistentTopicId, KafkaError, RequestTimedOut, error_from_code
from lamina.peer.addresses import Address
from lamina.peer.call import Call
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.connector import Connector
from lamina.peer.fetching import Fetched, fetch_one, fetched, partition_fetched
from lamina.peer.limits import Limits
from lamina.peer.listing import ListedOffset, list_one, listed, partition_listed
from lamina.peer.producing import ACKS_ALL, Produced, leader_hint, partition_produced, produce_one, produced
from lamina.peer.retries import CONTROLLER_ERRORS, COORDINATOR_ERRORS, LEADER_ERRORS, Backoff, is_retriable
from lamina.peer.routes import Routes
from lamina.peer.target import AnyBroker, Broker, Controller, Coordinator, Leader, Target
from lamina.wire.fetch_request import READ_UNCOMMITTED
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.primitives import Buffer

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TELL_AFTER_SECONDS = 3.0
"""How long a cluster that was never reached is tried without a word."""

_WRONG_BROKER = {
    AnyBroker: frozenset[int](),
    Broker: frozenset[int](),
    Controller: CONTROLLER_ERRORS,
    Coordinator: COORDINATOR_ERRORS,
    Leader: LEADER_ERRORS,
}
"""Errors in a response that say that its broker does not have the role for which it was asked, or not yet."""


class _LeaderMoved(Exception):
    """A broker told who leads now: the next attempt need not wait."""


class _Throttled(Exception):
    """A broker gives nothing for a while, because of a quota (KIP-219)."""

    def __init__(self, throttle_time_ms: int) -> None:
        self.seconds = throttle_time_ms / 1000


class _AnotherTopic(Exception):
    """The topic that has the name by now is not the one that is meant."""


class ClusterClient:
    """To be used as ``async with ClusterClient(…) as cluster``, on one event loop. Its end fails what is pending."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        connector: Connector,
        random: Callable[[], float],
        limits: Limits = Limits(),  # noqa: B008 - immutable
    ) -> None:
        self._routes = Routes(tuple(bootstrap), ConnectionPool(connector, limits))
        self._backoff = Backoff(limits.retry_backoff_ms, limits.retry_backoff_max_ms, random)
        self._limits = limits
        self._is_closed = False
        self._has_told = False

    async def __aenter__(self) -> "ClusterClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._is_closed = True
        await self._routes.close()

    # Calls

    async def request(self, to: Target, call: Call[T]) -> T:
        """The response of the broker that has a role.

        Errors in it are the caller's to read, except those that say that another broker has the role by now.
        """

        async def ask() -> T:
            connection = await self._routes.connection_to(to)
            response = await connection.request(call)
            for code in call.errors(response):
                if code in _WRONG_BROKER[type(to)]:
                    raise error_from_code(code, f"{connection.address} is not the one to ask")
            return response

        return await self._attempt(to, ask)

    async def send_once(self, to: Target, call: Call[T]) -> T:
        """As `request`, but a failure is the caller's at once, as are all errors in the response."""
        try:
            connection = await self._routes.connection_to(to)
            return await connection.request(call)
        except KafkaError:
            self._routes.forget(to)
            raise

    async def leaders(self, topic: str) -> dict[int, int]:
        """Which broker leads each partition of a topic, as far as is known; `NO_LEADER` for none."""
        leaders = await self._attempt(AnyBroker(), lambda: self._routes.leaders(topic))
        return {partition: leader.leader_id for partition, leader in leaders.items()}

    def forget_leaders(self, topic: str) -> None:
        """Ask for them again before the next use."""
        self._routes.forget(Leader(topic, 0))

    async def feature_level(self, name: str) -> int:
        """At which level the cluster has a feature; 0 where brokers do not tell."""

        async def ask() -> int:
            return (await self._routes.connection_to(AnyBroker())).feature_level(name)

        return await self._attempt(AnyBroker(), ask)

    async def brokers(self) -> dict[int, Address]:
        """By id, as the cluster tells them now."""
        await self._attempt(AnyBroker(), self._routes.refresh)
        return dict(self._routes.view.brokers)

    async def cluster_id(self) -> str | None:
        """``None`` where the brokers have not told one."""
        await self._attempt(AnyBroker(), self._routes.refresh)
        return self._routes.view.cluster_id

    async def coordinator_id(self, of: Coordinator) -> int:
        """Which broker it is."""
        return await self._attempt(of, lambda: self._routes.coordinator_id(of))

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        isolation_level: int = READ_UNCOMMITTED,
        topic_id: UUID | None = None,
    ) -> Fetched:
        """What the leader has from an offset on; a batch larger than `max_bytes` is given whole if it is the first.

        With a `topic_id`, raises `InconsistentTopicId` where the topic of that name is another one by now.
        A broker answers one connection in order: what is asked of the same leader meanwhile waits behind this. The
        time for which a quota holds a response back is no part of `api_timeout_ms`.
        """

        async def ask() -> Fetched:
            known_id, leader_epoch, connection = await self._routes.leader(topic, partition)
            if topic_id is not None and known_id not in (None, topic_id):
                raise _AnotherTopic
            response = await connection.request(
                fetch_one(
                    topic,
                    known_id,
                    partition,
                    leader_epoch,
                    offset,
                    max_bytes=max_bytes,
                    max_wait_ms=max_wait_ms,
                    min_bytes=min_bytes,
                    isolation_level=isolation_level,
                )
            )
            _check(response.error_code, topic, partition)
            if response.throttle_time_ms > 0 and not response.topics:
                raise _Throttled(response.throttle_time_ms)
            told = partition_fetched(response)
            self._follow_hint(topic, partition, told.current_leader, response.node_endpoints)
            _check(told.error_code, topic, partition)
            return fetched(told)

        while True:
            try:
                return await self._attempt(Leader(topic, partition), ask)
            except _Throttled as throttled:
                await asyncio.sleep(throttled.seconds)
            except _AnotherTopic:
                raise InconsistentTopicId(f"topic {topic} was deleted and made again") from None

    async def produce(
        self, topic: str, partition: int, batches: Buffer, *, acks: int = ACKS_ALL, timeout_ms: int = 30_000
    ) -> Produced:
        """Append whole batches, which the leader stamps with offsets; acks are 1 or all (-1)."""

        async def ask() -> Produced:
            topic_id, _, connection = await self._routes.leader(topic, partition)
            response = await connection.request(
                produce_one(topic, topic_id, partition, batches, acks=acks, timeout_ms=timeout_ms)
            )
            told = partition_produced(response)
            self._follow_hint(topic, partition, *leader_hint(response, told))
            _check(told.error_code, topic, partition, getattr(told, "error_message", None))
            return produced(told)

        return await self._attempt(Leader(topic, partition), ask)

    async def list_offset(
        self, topic: str, partition: int, timestamp_ms: int, *, isolation_level: int = READ_UNCOMMITTED
    ) -> ListedOffset:
        """The first offset whose record is as young as a timestamp, or one of those that `listing` names."""

        async def ask() -> ListedOffset:
            _, leader_epoch, connection = await self._routes.leader(topic, partition)
            response = await connection.request(list_one(topic, partition, leader_epoch, timestamp_ms, isolation_level))
            told = partition_listed(response)
            _check(told.error_code, topic, partition)
            return listed(told)

        return await self._attempt(Leader(topic, partition), ask)

    def _follow_hint(
        self, topic: str, partition: int, leader: CurrentLeader | None, endpoints: Sequence[NodeEndpoint]
    ) -> None:
        """Raises `_LeaderMoved` where a broker told who leads instead (KIP-951)."""
        if leader is not None and self._routes.take_hint(topic, partition, leader, endpoints):
            raise _LeaderMoved

    # Attempts

    async def _attempt(self, to: Target, once: Callable[[], Awaitable[T]]) -> T:
        """What `once` gives, tried until it does or the time is over."""
        failure: KafkaError | None = None
        attempt = 0
        began = asyncio.get_running_loop().time()
        deadline = began + self._limits.api_timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        return await once()
                    except _LeaderMoved:
                        continue
                    except KafkaError as error:
                        if self._is_closed or not is_retriable(error):
                            raise
                        failure = error
                        self._routes.forget(to)
                        self._tell(error, began)
                    await asyncio.sleep(self._backoff.wait_ms(attempt) / 1000)
                    attempt += 1
        except TimeoutError:
            in_vain = f"in vain for {self._limits.api_timeout_ms} ms"
            if failure is None:
                raise RequestTimedOut(f"waited {in_vain}") from None
            raise type(failure)(f"{failure}; tried {in_vain}") from failure

    def _tell(self, error: KafkaError, began: float) -> None:
        """Once, of a cluster that was never reached: whoever waits may have mistyped its address."""
        waited = asyncio.get_running_loop().time() - began
        if waited < _TELL_AFTER_SECONDS or self._has_told or self._routes.has_connected:
            return
        self._has_told = True
        logger.warning("%s; it is tried for %d s in all", error, self._limits.api_timeout_ms // 1000)


def _check(code: int, topic: str, partition: int, message: str | None = None) -> None:
    if code:
        reason = f": {message.rstrip('.')}" if message else ""
        raise error_from_code(code, f"{topic}-{partition}{reason}")
