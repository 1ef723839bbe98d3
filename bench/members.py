"""Members of groups as bare requests: a hundred cost one process little, so that the broker is what is measured.

Owns one connection for each member, and both protocols as a client sees them. Must not know what is measured.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from lamina.wire.codec import encode_request, parse_response
from lamina.wire.versions import nested_schema, request_schema

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 8, 9, 10, 11, 12, 14
CONSUMER_GROUP_HEARTBEAT = 68
VERSIONS = {
    OFFSET_COMMIT: 9,
    OFFSET_FETCH: 9,
    FIND_COORDINATOR: 4,
    JOIN_GROUP: 5,
    HEARTBEAT: 3,
    SYNC_GROUP: 3,
    CONSUMER_GROUP_HEARTBEAT: 0,
}
UNKNOWN_TOPIC, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 3, 14, 15, 16
NOT_YET = (UNKNOWN_TOPIC, LOADING, NOT_AVAILABLE, NOT_COORDINATOR)
UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 25, 27, 22, 79
RETRY_SECONDS = 0.01
CLASSIC_HEARTBEAT_SECONDS = 0.1
TIMEOUT = timedelta(seconds=45)
_UNCHANGED = timedelta(milliseconds=-1)


def request_of(api_key: int, **fields: Any) -> Any:
    return request_schema(api_key, VERSIONS[api_key])(**fields)


def nested(api_key: int, *names: str) -> Any:
    schema: Any = request_schema(api_key, VERSIONS[api_key])
    for name in names:
        schema = nested_schema(schema, name)
    return schema


def commit_request(group: str, member_id: str, epoch: int, topic: str, offsets: Mapping[int, int]) -> Any:
    partition = nested(OFFSET_COMMIT, "topics", "partitions")
    partitions = tuple(
        partition(partition_index=number, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
        for number, offset in offsets.items()
    )
    return request_of(
        OFFSET_COMMIT,
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=None,
        topics=(nested(OFFSET_COMMIT, "topics")(name=topic, partitions=partitions),),
    )


def fetch_request(group: str) -> Any:
    """Everything that the group committed."""
    one = nested(OFFSET_FETCH, "groups")(group_id=group, member_id=None, member_epoch=-1, topics=None)
    return request_of(OFFSET_FETCH, groups=(one,), require_stable=False)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, bootstrap: str) -> Connection:
        host, port = bootstrap.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, request: Any) -> None:
        self._writer.write(encode_request(request, 1, "bench"))

    async def answer(self, api_key: int) -> Any:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        _, response = parse_response(api_key, VERSIONS[api_key], await self._reader.readexactly(size))
        return response

    async def ask(self, request: Any) -> Any:
        self.send(request)
        return await self.answer(request.__api_key__)

    def close(self) -> None:
        self._writer.close()


async def find_coordinator(bootstrap: str, group: str) -> None:
    """Until the group has one, which makes the internal topic."""
    connection = await Connection.open(bootstrap)
    request = request_of(FIND_COORDINATOR, key_type=0, coordinator_keys=(group,))
    while (await connection.ask(request)).coordinators[0].error_code:
        await asyncio.sleep(RETRY_SECONDS)
    while (await connection.ask(fetch_request(group))).groups[0].error_code:
        await asyncio.sleep(RETRY_SECONDS)
    connection.close()


class ClassicMember:
    """Joins, is given its share by whoever leads, and follows every rebalance until it is stopped."""

    def __init__(self, connection: Connection, group: str, topic: str, partition_count: int) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self._partition_count = partition_count
        self._member_id = ""
        self.generation = -1
        self.member_count = 0
        """Of its generation; only the leader knows."""
        self.is_assigned = False

    def join(self) -> None:
        self.is_assigned = False
        subscription = struct.pack(">hih", 0, 1, len(self._topic)) + self._topic.encode() + struct.pack(">i", -1)
        protocol = nested(JOIN_GROUP, "protocols")(name="range", metadata=subscription)
        self._connection.send(
            request_of(
                JOIN_GROUP,
                group_id=self._group,
                session_timeout=TIMEOUT,
                rebalance_timeout=TIMEOUT,
                member_id=self._member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=(protocol,),
            )
        )

    async def follow(self) -> None:
        """After :meth:`join`: until cancelled."""
        while True:
            joined = await self._connection.answer(JOIN_GROUP)
            if joined.error_code == 0:
                self._member_id, self.generation = joined.member_id, joined.generation_id
                self.member_count = len(joined.members)
                if await self._sync([member.member_id for member in joined.members]):
                    self.is_assigned = True
                    await self._stay()
            elif joined.error_code == MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
            elif joined.error_code == UNKNOWN_MEMBER:
                self._member_id = ""
            elif joined.error_code not in (REBALANCE_IN_PROGRESS, *NOT_YET):
                raise RuntimeError(f"JoinGroup was answered with error {joined.error_code}")
            self.join()

    async def _sync(self, members: Sequence[str]) -> bool:
        share = -(-self._partition_count // max(len(members), 1))
        assignment = nested(SYNC_GROUP, "assignments")
        assignments = tuple(
            assignment(member_id=member, assignment=self._assignment(range(share * at, share * (at + 1))))
            for at, member in enumerate(members)
        )
        synced = await self._connection.ask(
            request_of(
                SYNC_GROUP,
                group_id=self._group,
                generation_id=self.generation,
                member_id=self._member_id,
                group_instance_id=None,
                assignments=assignments,
            )
        )
        return not synced.error_code

    def _assignment(self, partitions: range) -> bytes:
        numbers = [number for number in partitions if number < self._partition_count]
        topic = struct.pack(">hih", 0, 1, len(self._topic)) + self._topic.encode()
        return topic + struct.pack(f">i{len(numbers)}ii", len(numbers), *numbers, -1)

    async def _stay(self) -> None:
        """Until there is a rebalance."""
        alive = request_of(
            HEARTBEAT,
            group_id=self._group,
            generation_id=self.generation,
            member_id=self._member_id,
            group_instance_id=None,
        )
        while not (await self._connection.ask(alive)).error_code:
            await asyncio.sleep(CLASSIC_HEARTBEAT_SECONDS)


class ConsumerMember:
    """Heartbeats as often as the broker says, and takes at once whatever it is given."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self.member_id = ""
        self.epoch = 0
        self.owned: Mapping[UUID, tuple[int, ...]] = {}

    @property
    def owned_count(self) -> int:
        return sum(len(numbers) for numbers in self.owned.values())

    def join(self) -> None:
        self._send(subscribed=(self._topic,), owned={}, rebalance_timeout=TIMEOUT)

    async def follow(self) -> None:
        """After :meth:`join`: until cancelled."""
        while True:
            answer = await self._take()
            if answer is None:
                await asyncio.sleep(RETRY_SECONDS)
                self.join()
            elif answer.assignment is not None:
                self._send(owned=self.owned)
            else:
                await asyncio.sleep(answer.heartbeat_interval.total_seconds())
                self._send()

    async def joined(self) -> None:
        """Until the broker has taken it."""
        while await self._take() is None:
            await asyncio.sleep(RETRY_SECONDS)
            self.join()

    async def _take(self) -> Any:
        """What was answered; ``None`` while the coordinator is not ready."""
        answer = await self._connection.answer(CONSUMER_GROUP_HEARTBEAT)
        if answer.error_code in NOT_YET:
            return None
        if answer.error_code:
            raise RuntimeError(f"ConsumerGroupHeartbeat was answered with error {answer.error_code}")
        self.member_id, self.epoch = answer.member_id, answer.member_epoch
        if answer.assignment is not None:
            self.owned = {one.topic_id: tuple(one.partitions) for one in answer.assignment.topic_partitions}
        return answer

    def _send(
        self,
        subscribed: tuple[str, ...] | None = None,
        owned: Mapping[UUID, tuple[int, ...]] | None = None,
        rebalance_timeout: timedelta = _UNCHANGED,
    ) -> None:
        topic = nested(CONSUMER_GROUP_HEARTBEAT, "topic_partitions")
        self._connection.send(
            request_of(
                CONSUMER_GROUP_HEARTBEAT,
                group_id=self._group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=None,
                rack_id=None,
                rebalance_timeout=rebalance_timeout,
                subscribed_topic_names=subscribed,
                server_assignor=None,
                topic_partitions=None
                if owned is None
                else tuple(topic(topic_id=topic_id, partitions=numbers) for topic_id, numbers in owned.items()),
            )
        )
