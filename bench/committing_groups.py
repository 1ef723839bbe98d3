"""Many consumer groups that stay alive and commit through whatever happens to the brokers, and what they were told.

Each group has one member (KIP-848), which takes whatever partitions it is given and commits a number that grows. Like
any consumer it has connections of its own: a broker answers one request of a connection after the other, so on a shared
one a commit would wait for those of all other groups. An error that a client retries is counted; any
other one is a failure, as is a group that forgets a member within its session. One that no heartbeat of came through
for longer joins again. In the end every group must find the last number that it was told to be committed, or one that
it tried to commit after that. Must not know what happens to the brokers.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any

from lamina.errors import ErrorCode, KafkaError, UnknownMemberId, error_from_code
from lamina.peer.addresses import parse_bootstrap
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.retries import is_retriable
from lamina.peer.target import Coordinator, CoordinatorType

PAUSE_SECONDS = 1.0
SESSION_SECONDS = 45.0
"""As ``group.consumer.session.timeout.ms`` is by default."""
_HEARTBEAT, _OFFSET_COMMIT, _OFFSET_FETCH = 68, 8, 9
_TIMEOUT = timedelta(seconds=45)
_UNCHANGED = timedelta(milliseconds=-1)
_LIMITS = Limits(request_timeout_ms=10_000, api_timeout_ms=20_000)
_JOIN_EPOCH = 0


@dataclass(slots=True)
class Told:
    """Of all groups together."""

    commits: int = 0
    retried: int = 0
    """Errors that pass by themselves; those that the client itself has retried do not count."""
    rejoined: int = 0
    """Members that were out of their group, because for a whole session no heartbeat of theirs came through."""
    longest_wait_seconds: float = 0.0
    """Of one commit, from the first attempt on."""
    failures: list[str] = field(default_factory=list)


class _Member:
    def __init__(self, cluster: ClusterClient, group: str, topic: str, told: Told) -> None:
        self.acked = -1
        """The last number that was told to be committed."""
        self.tried = -1
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._told = told
        self._member_id = ""
        self._epoch = _JOIN_EPOCH
        self._owned: Sequence[Any] | None = ()
        """What is told with the next heartbeat."""
        self._beat_at = 0.0
        self._heard_at = 0.0
        """When the last heartbeat was sent that was answered."""
        self._has_failed = False

    async def run(self, stopping: asyncio.Event) -> None:
        # Hundreds that begin at once would find the coordinator busy with connections.
        await asyncio.sleep(PAUSE_SECONDS * random.random())
        await asyncio.gather(self._again(self._beat_if_due, stopping), self._again(self._commit, stopping))

    async def _again(self, step: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        while not stopping.is_set() and not self._has_failed:
            member_id = self._member_id
            try:
                await step()
            except UnknownMemberId as error:
                if member_id == self._member_id:
                    self._forgotten(error)
            except KafkaError as error:
                if is_retriable(error) or error.code == ErrorCode.STALE_MEMBER_EPOCH:
                    self._told.retried += 1
                else:
                    self._fail(str(error))
            await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))

    def _forgotten(self, error: UnknownMemberId) -> None:
        silent_seconds = time.monotonic() - self._heard_at
        if is_within_session(silent_seconds):
            self._fail(f"{error}, {silent_seconds:.1f} s after a heartbeat")
            return
        self._told.rejoined += 1
        self._member_id, self._epoch, self._owned, self._beat_at = "", _JOIN_EPOCH, (), 0.0

    def _fail(self, why: str) -> None:
        self._told.failures.append(f"{self._group}: {why}")
        self._has_failed = True

    async def _beat_if_due(self) -> None:
        if time.monotonic() >= self._beat_at:
            await self._heartbeat()

    async def _heartbeat(self) -> None:
        is_joining, sent_at = self._epoch == _JOIN_EPOCH, time.monotonic()
        told = await self._ask(
            MessageCall(
                _HEARTBEAT,
                range(1),
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=self._epoch,
                instance_id=None,
                rack_id=None,
                rebalance_timeout=_TIMEOUT if is_joining else _UNCHANGED,
                subscribed_topic_names=[self._topic] if is_joining else None,
                server_assignor=None,
                topic_partitions=self._owned,
            ),
        )
        if told.error_code:
            raise error_from_code(told.error_code, told.error_message or "ConsumerGroupHeartbeat")
        self._member_id, self._epoch, self._owned = told.member_id, told.member_epoch, None
        self._heard_at = sent_at
        self._beat_at = time.monotonic() + told.heartbeat_interval.total_seconds()
        if told.assignment is not None:
            self._owned = [
                {"topic_id": one.topic_id, "partitions": one.partitions} for one in told.assignment.topic_partitions
            ]
            self._beat_at = 0.0

    async def _commit(self) -> None:
        if self._epoch == _JOIN_EPOCH:
            return
        self.tried += 1
        number, began = self.tried, time.monotonic()
        partition = {
            "partition_index": 0,
            "committed_offset": number,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        response = await self._ask(
            MessageCall(
                _OFFSET_COMMIT,
                range(9, 10),
                group_id=self._group,
                generation_id_or_member_epoch=self._epoch,
                member_id=self._member_id,
                group_instance_id=None,
                topics=[{"name": self._topic, "partitions": [partition]}],
            )
        )
        code = response.topics[0].partitions[0].error_code
        if code:
            raise error_from_code(code, "OffsetCommit")
        self.acked = number
        self._told.commits += 1
        self._told.longest_wait_seconds = max(self._told.longest_wait_seconds, time.monotonic() - began)

    async def check(self) -> None:
        """That nothing is lost."""
        response = await self._ask(
            MessageCall(
                _OFFSET_FETCH,
                range(8, 9),
                groups=[{"group_id": self._group, "topics": [{"name": self._topic, "partition_indexes": [0]}]}],
                require_stable=True,
            )
        )
        group = response.groups[0]
        if group.error_code:
            raise error_from_code(group.error_code, "OffsetFetch")
        found = group.topics[0].partitions[0].committed_offset
        if is_lost(self.acked, self.tried, found):
            self._told.failures.append(f"{self._group} committed {self.acked}, and finds {found}")

    async def _ask(self, call: MessageCall) -> Any:
        return await self._cluster.request(self._coordinator, call)

    @property
    def _coordinator(self) -> Coordinator:
        return Coordinator(CoordinatorType.GROUP, self._group)


def is_within_session(silent_seconds: float) -> bool:
    """Whether a group must still know a member of which the last heartbeat was sent so long ago."""
    return silent_seconds < SESSION_SECONDS


def is_lost(acked: int, tried: int, found: int) -> bool:
    """Whether a commit that was acknowledged is gone. What was tried after it may have been stored or not."""
    return not acked <= found <= tried


class CommittingGroups:
    """From a thread of its own, as a context; checked when it ends."""

    def __init__(self, bootstrap: str, groups: int, topics: Sequence[str]) -> None:
        """Group after group subscribes to the ``topics`` in turn."""
        self.told = Told()
        self._bootstrap = bootstrap
        self._wanted = [(f"group-{number}", topics[number % len(topics)]) for number in range(groups)]
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="committing-groups", daemon=True)

    def __enter__(self) -> CommittingGroups:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._live())
        except Exception as error:
            self.told.failures.append(repr(error))
        finally:
            self._loop.close()

    async def _live(self) -> None:
        connector, bootstrap = PlainConnector("committing-groups"), parse_bootstrap(self._bootstrap)
        async with AsyncExitStack() as open_:
            members = []
            for group, topic in self._wanted:
                cluster = ClusterClient(bootstrap, connector, random.random, _LIMITS)
                members.append(_Member(await open_.enter_async_context(cluster), group, topic, self.told))
            await asyncio.gather(*(member.run(self._stopping) for member in members))
            await asyncio.gather(*(member.check() for member in members))
