"""A leader of real logs, reached without sockets: it answers Fetch as R4, R5 and R26 say, and ListOffsets as R37."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast
from uuid import UUID

from lamina.broker.partitions.partition import Partition
from lamina.broker.requests.fetch_sessions import Fetching, FetchSessions
from lamina.broker.requests.replica_feed import FollowedPartition
from lamina.broker.turns import Turns
from lamina.clocks import SYSTEM_CLOCKS
from lamina.errors import ErrorCode, FetchSessionError
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits
from lamina.wire.codec import SIZE_BYTES, parse_request
from lamina.wire.fetch_request import FetchPartition, FetchRequest, parse_fetch_request
from lamina.wire.fetch_response import DivergingEpoch, PartitionFetched, TopicFetched, encode_fetch_response
from lamina.wire.headers import RequestHeader, parse_request_header
from tests.log.building import LogBuilder
from tests.peer.responses import response_frame
from tests.peer.scripted import versions_facts

FETCH, LIST_OFFSETS, API_VERSIONS = 1, 2, 18
LATEST = -1


@dataclass(eq=False)
class LedPartition:
    """Also a partition as the feed of a follower's session sees it: all followers are in sync."""

    topic: str
    builder: LogBuilder
    epoch: int = 0
    high_watermark: int | None = None
    """The log end unless it is set."""
    error_code: int = 0
    """Refuses every fetch, if set."""
    diverging: DivergingEpoch | None = None
    """Answers every fetch, if set."""
    listed_offset: int | None = None
    """Answers every ListOffsets, if set."""
    parked: dict[FollowedPartition, None] = field(default_factory=dict)
    _told: tuple[object, ...] = ()

    def park(self, parked: FollowedPartition, *, is_replica: bool) -> None:
        self.parked[parked] = None

    def unpark(self, parked: FollowedPartition) -> None:
        self.parked.pop(parked, None)

    def is_in_sync_at(self, _: int, offset: int) -> bool:
        return offset == self.builder.log.log_end_offset

    def replica_stayed(self, replica_id: int, until_ms: int) -> None:
        pass

    def tell_changes(self) -> None:
        """A partition says itself that it has changed; here, when somebody fetches."""
        log = self.builder.log
        now = (log.log_start_offset, log.log_end_offset, self.bound, self.epoch, self.error_code, self.diverging)
        if now != self._told:
            self._told = now
            for parked in tuple(self.parked):
                parked.look_again()

    def fetch(self, asked: FetchPartition) -> PartitionFetched:
        log, index = self.builder.log, asked.partition_index
        error_code = self.error_code
        if asked.current_leader_epoch != self.epoch:
            is_older = asked.current_leader_epoch < self.epoch
            error_code = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
        if error_code:
            return PartitionFetched(index, error_code, -1)
        if self.diverging is not None:
            return PartitionFetched(index, 0, 0, 0, 0, diverging_epoch=self.diverging)
        offset, last_epoch = asked.fetch_offset, asked.last_fetched_epoch
        marks = (self.bound, self.bound, log.log_start_offset)
        if last_epoch >= 0:
            end = log.epochs.end_of(last_epoch, log.log_end_offset)
            if end.epoch < 0 or offset < log.log_start_offset:
                return PartitionFetched(index, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
            if end.epoch < last_epoch or end.start_offset < offset:
                return PartitionFetched(index, 0, *marks, diverging_epoch=DivergingEpoch(*end))
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return PartitionFetched(index, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        return PartitionFetched(index, 0, *marks, self.builder.read(offset, asked.max_bytes))

    @property
    def bound(self) -> int:
        return self.builder.log.log_end_offset if self.high_watermark is None else self.high_watermark

    def elect(self) -> None:
        """The next leader epoch begins, at the log end (R20)."""
        self.epoch += 1
        self.builder.log.begin_epoch(self.epoch)


class MemoryLeader:
    def __init__(self) -> None:
        self.led: dict[tuple[UUID, int], LedPartition] = {}
        self.sessions = FetchSessions(100, 120_000, count(1).__next__, lambda _, __: False)
        self.asked: list[tuple[int, str | None, Any]] = []
        """API key, client id and request, ApiVersions left out."""
        self.is_reachable = True
        self.connections: list[MemoryTransport] = []
        self.spoil: Callable[[bytes], bytes] | None = None
        """Changes the records that are sent."""
        self.on_list_offsets: Callable[[], None] | None = None
        """Called before each ListOffsets is answered."""
        self.gate = asyncio.Event()
        """Every answer to a Fetch waits for it once it is complete."""
        self.gate.set()
        self.is_held = False
        """Whether one does."""
        self.asked_at_once: list[bool] = []
        """Of each answer: whether the next request came in the turn in which it was received."""
        self._grown = asyncio.Event()

    def grown(self) -> None:
        """Wake whoever waits for more."""
        self._grown.set()

    def fetches(self) -> list[FetchRequest]:
        return [request for key, _, request in self.asked if key == FETCH]

    def asked_of_partitions(self) -> list[FetchPartition]:
        return [one for request in self.fetches() for topic in request.topics for one in topic.partitions]

    def pending(self) -> int:
        """How many partitions its followers' sessions would look at now."""
        return sum(len(one.feed.pending) for one in self.sessions._sessions.values() if one.feed is not None)

    async def serve(self, frame: bytes) -> bytes:
        header = parse_request_header(frame)
        if header.api_key == API_VERSIONS:
            offered = versions_facts({FETCH: 18, LIST_OFFSETS: 9, API_VERSIONS: 4})
            return response_frame(API_VERSIONS, header.api_version, header.correlation_id, api_keys=offered)
        body = frame[header.body_at :]
        is_fetch = header.api_key == FETCH
        request = (
            parse_fetch_request(header.api_version, body)
            if is_fetch
            else parse_request(header.api_key, header.api_version, body)
        )
        self.asked.append((header.api_key, header.client_id, request))
        return await self._fetch(header, request) if is_fetch else self._list_offsets(header, request)

    async def _fetch(self, header: RequestHeader, request: FetchRequest) -> bytes:
        try:
            for led in self.led.values():
                led.tell_changes()
            fetching = self.sessions.begin(request, True, 0, is_privileged=True, client_id=header.client_id)
        except FetchSessionError as error:
            return _joined(
                encode_fetch_response(header.api_version, header.correlation_id, [], 0, error_code=error.code)
            )
        await fetching.gather_in_turns(Turns(SYSTEM_CLOCKS))
        answered = self._read(fetching)
        if not any(one.records or one.error_code or one.diverging_epoch for _, one in answered):
            self._grown.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._grown.wait(), request.max_wait_ms / 1000)
            for led in self.led.values():
                led.tell_changes()
            fetching.look_again()
            answered = self._read(fetching)
        topics = [TopicFetched(None, topic_id, [one]) for ((_, topic_id), _), one in fetching.news(answered)]
        self.is_held = True
        await self.gate.wait()
        self.is_held = False
        return _joined(
            encode_fetch_response(header.api_version, header.correlation_id, topics, 0, session_id=fetching.session_id)
        )

    def _read(self, fetching: Fetching) -> list[tuple[Any, PartitionFetched]]:
        answered = []
        for key, asked in fetching.asked:
            (_, topic_id), index = key
            assert topic_id is not None
            led = self.led.get((topic_id, index))
            if led is not None and fetching.feed is not None:
                fetching.feed.looked_at(key, cast(Partition, led))
            one = PartitionFetched(index, ErrorCode.UNKNOWN_TOPIC_ID, -1) if led is None else led.fetch(asked)
            if one.records and self.spoil is not None:
                one = one._replace(records=self.spoil(cast(bytes, one.records)))
            answered.append((key, one))
        return answered

    def _list_offsets(self, header: RequestHeader, request: Any) -> bytes:
        if self.on_list_offsets is not None:
            self.on_list_offsets()
        (topic,) = request.topics
        (asked,) = topic.partitions
        (led,) = [
            one for (_, index), one in self.led.items() if (one.topic, index) == (topic.name, asked.partition_index)
        ]
        log = led.builder.log
        offset = log.log_end_offset if asked.timestamp == LATEST else log.log_start_offset
        if led.listed_offset is not None:
            offset = led.listed_offset
        told = {"partition_index": asked.partition_index, "offset": offset, "timestamp": -1, "leader_epoch": led.epoch}
        return response_frame(
            LIST_OFFSETS,
            header.api_version,
            header.correlation_id,
            topics=[{"name": topic.name, "partitions": [told]}],
        )


def _joined(pieces: list[Any]) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)


class MemoryTransport(asyncio.Transport):
    """One connection to a leader, which answers in order."""

    def __init__(self, leader: MemoryLeader, connection: Connection) -> None:
        super().__init__()
        self._leader = leader
        self._connection = connection
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def write(self, data: Any) -> None:
        self._frames.put_nowait(bytes(data)[SIZE_BYTES:])

    def abort(self) -> None:
        self._task.cancel()

    def break_off(self) -> None:
        self.abort()
        self._connection.connection_lost(None)

    async def _serve(self) -> None:
        while True:
            answer = await self._leader.serve(await self._frames.get())
            at = 0
            while at < len(answer):
                buffer = self._connection.get_buffer(-1)
                size = min(len(buffer), len(answer) - at)
                buffer[:size] = answer[at : at + size]
                self._connection.buffer_updated(size)
                at += size
            self._leader.asked_at_once.append(not self._frames.empty())
            await asyncio.sleep(0)  # Other connections are served as well.


class MemoryConnector:
    """The way to leaders by their addresses, for one client id."""

    def __init__(self, leaders: dict[Address, MemoryLeader], client_id: str) -> None:
        self._leaders = leaders
        self._client_id = client_id

    async def connect(self, address: Address, limits: Limits) -> Connection:
        leader = self._leaders.get(address)
        if leader is None or not leader.is_reachable:
            raise ConnectionRefusedError(111, "Connection refused")
        connection = Connection(address, self._client_id, limits)
        transport = MemoryTransport(leader, connection)
        leader.connections.append(transport)
        connection.connection_made(transport)
        return connection
