"""Fetch (key 1), versions 4-18.

Behaviour: long poll until `min_bytes` or `max_wait_ms`; records leave as file ranges; consumers see up to the
high watermark, or the last stable offset with the aborted transactions they have to skip; incremental sessions
as in KIP-227. The first partition with records may exceed the limits by one batch, no other may. Many partitions are
read and answered in turns of the loop.
Followers see up to the log end. What a fetch says of its follower counts once, when it arrives, and only where it is
neither refused nor told where it diverges (R6, R86). A reader that names the epoch of its last record is told if this
log parts from its own (R26). With racks, a consumer may be sent to an in-sync follower (KIP-392). A follower that is
not in sync gets no records of a throttled partition while the quota is exceeded (R78). A consumer above its quota gets
nothing but the time that it has to wait, and asks for the same again (S63).
Version notes: KAFKA_STORAGE_ERROR from v6, NOT_LEADER_OR_FOLLOWER before; sessions from v7, leader epochs from v9, zstd
from v10, consumers may read from followers from v11, topic ids in place of names from v13, who leads instead from v16;
what a follower says of its directory (v17) and its high watermark (v18) is not looked at.
Not done: tiered offsets.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence, Sized
from typing import Any

from lamina.broker.counters import Counters, TopicCounters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.partitions.parked_fetch import ParkedFetch, readable_bytes
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import denial
from lamina.broker.requests.fetch_sessions import (
    PARTITIONS_AT_A_TIME,
    Answered,
    Fetching,
    FetchSessions,
)
from lamina.broker.requests.follower_waits import FollowerWaits
from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.leader_hints import FIRST_FETCH_WITH_HINTS, IN_FETCH, current_leader, node_endpoints
from lamina.broker.requests.parked_follower import ParkedFollower
from lamina.broker.requests.replica_feed import PartitionKey, ReplicaFeed
from lamina.broker.requests.replica_selector import follower_in_rack
from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.broker.waits import WAITS
from lamina.clocks import Clocks
from lamina.errors import (
    ErrorCode,
    FetchSessionError,
    InconsistentTopicId,
    KafkaError,
    OffsetOutOfRange,
    StorageError,
    TopicAuthorizationFailed,
    UnsupportedCompression,
)
from lamina.log.lease import Lease
from lamina.log.partition_log import PartitionLog
from lamina.records.batch import HEADER_BYTES, Codec, read_header
from lamina.security.acls import Operation, ResourceType
from lamina.settings.replication import RACK_AWARE_SELECTOR, REPLICA_SELECTOR_CLASS
from lamina.wire.api_keys import FETCH
from lamina.wire.fetch_request import (
    FIRST_WITH_TOPIC_IDS,
    NO_REPLICA_ID,
    READ_COMMITTED,
    VERSIONS,
    FetchPartition,
    FetchRequest,
    parse_fetch_request,
)
from lamina.wire.fetch_response import (
    INLINE_BYTES,
    AbortedTransaction,
    DivergingEpoch,
    PartitionFetched,
    TopicFetched,
    encode_fetch_response,
)
from lamina.wire.leaders import NodeEndpoint

_FIRST_WITH_STORAGE_ERROR = 6
_FIRST_WITH_ZSTD = 10
_FIRST_FROM_FOLLOWERS = 11
_READ, _TOPIC = Operation.READ, ResourceType.TOPIC
"""Looked up once: for members of an enumeration that takes as long as to decide by them."""
_DEBUGGING = -2
"""The replica id of a reader that is shown everything, on any replica."""

MayReplicate = Callable[[Request], bool]
"""Whether a client may fetch as a follower."""


class _Read:
    """One look at all partitions of a fetch."""

    __slots__ = (
        "answered",
        "cold",
        "is_urgent",
        "partitions",
        "reassignment_bytes",
        "size_bytes",
        "throttled_bytes",
        "topics",
    )

    def __init__(self) -> None:
        self.answered: list[Answered] = []
        self.partitions: list[tuple[Partition, int]] = []
        """Each with its ``readable_bytes`` at that time."""
        self.topics: list[TopicCounters | None] = []
        """Whose partitions were asked for, in the order of ``answered``; ``None`` where there is no such partition."""
        self.size_bytes = 0
        self.reassignment_bytes = 0
        """Those of them that are for replicas that are being added."""
        self.throttled_bytes = 0
        """Those of them that are for followers of throttled partitions."""
        self.is_urgent = False
        """Whether there is something to tell that is not worth waiting with."""
        self.cold: list[Lease] = []

    def give_back(self) -> None:
        """It is not answered."""
        for _, fetched in self.answered:
            if isinstance(fetched.records, Lease):
                fetched.records.give_back()
        self.answered.clear()
        self.topics.clear()


class Fetch:
    """The handler, with what it works on."""

    def __init__(
        self,
        metadata: Metadata,
        partitions: Partitions,
        may_replicate: MayReplicate,
        fetch_sessions: FetchSessions,
        follower_waits: FollowerWaits,
        throttles: ReplicationThrottles,
        fetch_max_bytes: int,
        counters: Counters,
        threads: Threads,
        message_thread: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
        authorizer: Authorizer | None,
    ) -> None:
        self._authorizer = authorizer
        self._metadata = metadata
        self._partitions = partitions
        self._may_replicate = may_replicate
        self._is_rack_aware = metadata.settings.get(REPLICA_SELECTOR_CLASS) == RACK_AWARE_SELECTOR
        self._fetch_sessions = fetch_sessions
        self._follower_waits = follower_waits
        self._throttles = throttles
        self._fetch_max_bytes = fetch_max_bytes
        self._counters = counters
        self._threads = threads
        self._message_thread = message_thread
        self._clocks = clocks
        self._loop = loop

    def handle(self, request: Request, message: FetchRequest) -> Response | Awaitable[Response]:
        is_replica = message.replica_id >= 0
        if is_replica and not self._may_replicate(request):
            raise TopicAuthorizationFailed("this listener serves no followers, or not this user as one")
        if request.charge is not None:
            message = self._charged(request, message)
        uses_topic_ids = request.api_version >= FIRST_WITH_TOPIC_IDS
        fetching = self._fetch_sessions.begin(
            message,
            uses_topic_ids,
            self._clocks.monotonic_ms(),
            is_privileged=is_replica,
            client_id=request.client_id,
        )
        if len(fetching.asked) > PARTITIONS_AT_A_TIME:
            return self._handle_many(request, message, fetching)
        feed, read = fetching.feed, self._read_at_once(request, message, fetching, is_arrival=True)
        if not self._is_enough(message, fetching, read):
            read.give_back()
            if feed is not None:
                return self._park_follower(request, message, fetching, feed, read)
            return self._park(request, message, fetching, read)
        if read.cold:
            # A task that is cancelled before it begins never runs: it reads again, and begins without leases.
            read.give_back()
            return self._answer_cold(request, message, fetching)
        return self._answer(request, message, fetching, read)

    def _charged(self, request: Request, message: FetchRequest) -> FetchRequest:
        """No more than the client's quota allows at once (S63); followers have none."""
        if message.replica_id >= 0 or request.charge is None:
            request.charge = None
            return message
        most_bytes = request.charge.fetch_bytes(request)
        if most_bytes is None:
            return message
        max_bytes = min(message.max_bytes, most_bytes, self._fetch_max_bytes)
        return message._replace(max_bytes=max_bytes, min_bytes=min(message.min_bytes, max_bytes))

    def _is_enough(self, message: FetchRequest, fetching: Fetching, read: _Read) -> bool:
        """Whether to answer now; not if there is too little and the client would rather wait."""
        if read.size_bytes >= message.min_bytes or read.is_urgent or fetching.is_empty:
            return True
        return message.max_wait_ms <= 0 or self._partitions.is_closing

    async def _handle_many(self, request: Request, message: FetchRequest, fetching: Fetching) -> Response:
        """As above, where one turn of the loop would be too long for all partitions."""
        await fetching.gather_in_turns(Turns(self._clocks))
        read = await self._read(request, message, fetching, is_arrival=True)
        if self._is_enough(message, fetching, read):
            return await self._load_and_answer(request, message, fetching, read)
        read.give_back()
        if fetching.feed is not None:
            return await self._park_follower(request, message, fetching, fetching.feed, read)
        return await self._park(request, message, fetching, read)

    def _park_follower(
        self, request: Request, message: FetchRequest, fetching: Fetching, feed: ReplicaFeed, read: _Read
    ) -> LaterResponse:
        """A session's: it is told of what changes, and needs no task to look."""
        later = LaterResponse(self._loop)
        wait_ms = self._follower_waits.longest_ms(message.replica_id, message.max_wait_ms)
        parked = ParkedFollower(
            request,
            feed,
            message.min_bytes - read.size_bytes,
            self._loop.time() + wait_ms / 1000,
            self._follower_waits,
            self._counters,
            self._clocks,
            self._loop,
            lambda: later.finish(lambda: self._answered_follower(request, message, fetching)),
        )
        later.give_up = parked.leave
        return later

    def _answered_follower(
        self, request: Request, message: FetchRequest, fetching: Fetching
    ) -> Response | Coroutine[Any, Any, Response]:
        """The answer to a fetch that was parked; in turns of the loop where one is too short."""
        fetching.look_again()
        if len(fetching.asked) <= PARTITIONS_AT_A_TIME:
            read = self._read_at_once(request, message, fetching)
            try:
                if not read.cold:
                    return self._answer(request, message, fetching, read)
            except BaseException:
                read.give_back()
                raise
            read.give_back()
        return self._answer_in_its_own_time(request, message, fetching)

    async def _answer_in_its_own_time(self, request: Request, message: FetchRequest, fetching: Fetching) -> Response:
        """What it waits for is on its own account, whoever woke it."""
        WAITS.set(request.waits)
        return await self._answer_cold(request, message, fetching)

    async def _park(self, request: Request, message: FetchRequest, fetching: Fetching, read: _Read) -> Response:
        replica_id = message.replica_id
        deadline = self._loop.time() + self._follower_waits.longest_ms(replica_id, message.max_wait_ms) / 1000
        is_committed = message.isolation_level == READ_COMMITTED
        may_wait = True
        while may_wait and not self._partitions.is_closing and self._loop.time() < deadline:
            parked = ParkedFetch(
                self._loop,
                message.min_bytes - read.size_bytes,
                is_committed=is_committed,
                is_replica=replica_id >= 0,
            )
            began_ns = self._clocks.monotonic_ns()
            self._counters.parked_fetches += 1
            request.park(parked.stop_waiting)
            try:
                with self._follower_waits.waiting(replica_id, parked):
                    may_wait = await parked.wait(read.partitions, deadline, self._turns(fetching))
            finally:
                self._counters.parked_fetches -= 1
                request.unpark()
            if request.waits is not None:
                request.waits.parked_ns += self._clocks.monotonic_ns() - began_ns
            if not is_committed:
                break
            # What came may belong to a transaction that is open: to this reader it is as if nothing had come.
            read = await self._read(request, message, fetching)
            read.give_back()
            if read.size_bytes >= message.min_bytes or read.is_urgent:
                break
        return await self._answer_cold(request, message, fetching)

    async def _answer_cold(self, request: Request, message: FetchRequest, fetching: Fetching) -> Response:
        read = await self._read(request, message, fetching)
        return await self._load_and_answer(request, message, fetching, read)

    async def _load_and_answer(
        self, request: Request, message: FetchRequest, fetching: Fetching, read: _Read
    ) -> Response:
        """Bring what is not in the page cache there on a thread, so that sending it does not hold up the loop."""
        while True:
            try:
                for lease in read.cold:
                    await self._threads.run_to_its_end(lease.load)
                turns = self._turns(fetching)
                if turns is not None:
                    return await self._answer_in_turns(request, message, fetching, read, turns)
                return self._answer(request, message, fetching, read)
            except StorageError:
                # A log that cannot be read is offline by now, which the next look tells.
                read.give_back()
                read = await self._read(request, message, fetching)
            except BaseException:
                read.give_back()
                raise

    def _is_throttled(self, request: Request, read: _Read) -> bool:
        """Whether the client has to wait before it gets what was read; it asks again then (S63)."""
        charge = request.charge
        if charge is None:
            return False
        request.throttled_ms()
        return not charge.fetched(request, read.size_bytes)

    def _answer_throttled(self, request: Request, fetching: Fetching, read: _Read) -> Response:
        read.give_back()
        return _encoded(request, [], session_id=self._fetch_sessions.throttled(fetching))

    def _answer(self, request: Request, message: FetchRequest, fetching: Fetching, read: _Read) -> Response:
        if request.charge is not None and self._is_throttled(request, read):
            return self._answer_throttled(request, fetching, read)
        for counters, (_, fetched) in zip(read.topics, read.answered, strict=True):
            _count(request, counters, fetched)
        if message.replica_id >= 0:
            self._count_sent(read)
        news = fetching.news(read.answered)
        _give_back_others(read, news)
        topics: list[TopicFetched] = []
        for key, fetched in news:
            _add(topics, key, fetched)
        endpoints = self._endpoints(request, message, topics) if request.error_code else ()
        return _encoded(request, topics, session_id=fetching.session_id, endpoints=endpoints)

    def _count_sent(self, read: _Read) -> None:
        """What followers are sent."""
        self._counters.replication.reassignment_out_bytes += read.reassignment_bytes
        if read.throttled_bytes:
            self._throttles.sent(read.throttled_bytes)

    def _endpoints(
        self, request: Request, message: FetchRequest, topics: Sequence[TopicFetched]
    ) -> Sequence[NodeEndpoint]:
        """Where the leaders are that the answer hints at; another broker knows the way (R34)."""
        if message.replica_id >= 0:
            return ()
        leaders = [fetched.current_leader for topic in topics for fetched in topic.partitions if fetched.current_leader]
        return node_endpoints(self._metadata.image, leaders, request.listener_name)

    async def _answer_in_turns(
        self, request: Request, message: FetchRequest, fetching: Fetching, read: _Read, turns: Turns
    ) -> Response:
        """As ``_answer``, for many partitions."""
        if self._is_throttled(request, read):
            return self._answer_throttled(request, fetching, read)
        for counters, (_, fetched) in zip(read.topics, read.answered, strict=True):
            _count(request, counters, fetched)
            await turns.step()
        if message.replica_id >= 0:
            self._count_sent(read)
        news = await fetching.news_in_turns(read.answered, turns)
        _give_back_others(read, news)
        topics: list[TopicFetched] = []
        for key, fetched in news:
            _add(topics, key, fetched)
            await turns.step()
        endpoints = self._endpoints(request, message, topics) if request.error_code else ()
        return await self._message_thread.compute(
            lambda: _encoded(request, topics, session_id=fetching.session_id, endpoints=endpoints)
        )

    def _turns(self, fetching: Fetching) -> Turns | None:
        """If the partitions are too many for one."""
        return Turns(self._clocks) if len(fetching.asked) > PARTITIONS_AT_A_TIME else None

    def _read_at_once(
        self, request: Request, message: FetchRequest, fetching: Fetching, *, is_arrival: bool = False
    ) -> _Read:
        """Look at all partitions, which are few."""
        read, feed = _Read(), fetching.feed
        for key, asked in fetching.asked:
            self._read_one(request, message, key, asked, read, feed, is_arrival=is_arrival)
        return read

    async def _read(
        self, request: Request, message: FetchRequest, fetching: Fetching, *, is_arrival: bool = False
    ) -> _Read:
        """Look at all partitions; if they are many, at a few in each turn of the loop."""
        if not is_arrival:
            fetching.look_again()
        read = _Read()
        turns = self._turns(fetching)
        try:
            for key, asked in fetching.asked:
                self._read_one(request, message, key, asked, read, fetching.feed, is_arrival=is_arrival)
                if turns is not None:
                    await turns.step()
        except BaseException:
            read.give_back()
            raise
        return read

    def _read_one(
        self,
        request: Request,
        message: FetchRequest,
        key: PartitionKey,
        asked: FetchPartition,
        read: _Read,
        feed: ReplicaFeed | None,
        *,
        is_arrival: bool,
    ) -> None:
        """``is_arrival`` the first time that a request's partition is read: then a follower's fetch counts."""
        left_bytes = min(message.max_bytes, self._fetch_max_bytes) - read.size_bytes
        found = len(read.partitions)
        fetched = self._read_partition(request, message, key, asked, left_bytes, not read.size_bytes, read.partitions)
        read.answered.append((key, fetched))
        partition = read.partitions[-1][0] if len(read.partitions) > found else None
        if feed is not None and partition is not None:
            feed.looked_at(key, partition)
        is_replica = message.replica_id >= 0
        read.topics.append(None if partition is None or is_replica else partition.counters)
        if fetched.error_code or fetched.diverging_epoch is not None or fetched.preferred_read_replica >= 0:
            read.is_urgent = True
        elif is_replica:
            if is_arrival and partition is not None:
                partition.replica_fetched(
                    message.replica_id, message.replica_epoch, asked.fetch_offset, asked.log_start_offset
                )
        elif message.replica_id != _DEBUGGING and asked.fetch_offset > fetched.high_watermark:
            # Between high watermark and log end: the consumer has read from another replica, which knows more (R35).
            read.is_urgent = True
        records = fetched.records
        if records:
            size_bytes = len(records)
            read.size_bytes += size_bytes
            if is_replica and partition is not None:
                if partition.is_adding(message.replica_id):
                    read.reassignment_bytes += size_bytes
                if partition.is_throttled_as_leader:
                    read.throttled_bytes += size_bytes
            if isinstance(records, Lease) and not records.is_cached():
                read.cold.append(records)

    def _read_partition(
        self,
        request: Request,
        message: FetchRequest,
        key: PartitionKey,
        asked: FetchPartition,
        left_bytes: int,
        may_exceed: bool,
        partitions: list[tuple[Partition, int]],
    ) -> PartitionFetched:
        (name, topic_id), index = key
        topic = name or ""
        try:
            topic = self._partitions.name_of(topic_id) if name is None else name
            if self._authorizer is not None:
                _check_allowed(self._authorizer, request, message, topic)
            partition = self._partitions.get(topic, index)
            if topic_id is not None and topic_id != partition.topic_id:
                raise InconsistentTopicId(f"{partition.log.name} has another topic id")
            partition.check_served_here()
            partition.check_epoch(asked.current_leader_epoch)
            is_replica = message.replica_id >= 0
            if is_replica:
                partition.check_replica(message.replica_id, message.replica_epoch, asked.current_leader_epoch)
            elif request.api_version < _FIRST_FROM_FOLLOWERS:
                partition.require_leader()
            partitions.append((partition, readable_bytes(partition, is_replica=is_replica)))
            if self._is_rack_aware:
                follower_id = self._preferred_replica(request, message, partition, asked.fetch_offset)
                if follower_id is not None:
                    return _sent_to(follower_id, partition, asked)
            is_held_back = is_replica and self._throttles.holds_back(partition, message.replica_id)
            if is_held_back and asked.fetch_offset < partition.log.log_end_offset:
                self._counters.replication.throttled_reads += 1
            return _read_records(
                request, message, partition, asked, left_bytes, may_exceed=may_exceed, is_held_back=is_held_back
            )
        except KafkaError as error:
            leader = None
            if error.code in IN_FETCH and request.api_version >= FIRST_FETCH_WITH_HINTS:
                leader = current_leader(self._metadata.image, topic, index)
            return PartitionFetched(index, _known_code(request, error.code), -1, current_leader=leader)
        except Exception as error:
            self._partitions.failed(topic or str(topic_id), index, error)
            return PartitionFetched(index, _known_code(request, ErrorCode.KAFKA_STORAGE_ERROR), -1)

    def _preferred_replica(
        self, request: Request, message: FetchRequest, partition: Partition, offset: int
    ) -> int | None:
        leader = partition.leader
        if leader is None or message.replica_id != NO_REPLICA_ID or request.api_version < _FIRST_FROM_FOLLOWERS:
            return None
        image, listener_name = self._metadata.image, request.listener_name
        return follower_in_rack(image, leader, partition.topic, partition.index, offset, message.rack_id, listener_name)


def _check_allowed(authorizer: Authorizer, request: Request, message: FetchRequest, topic: str) -> None:
    """At every look: rules that have changed hold for sessions and long polls that began before."""
    if message.replica_id >= 0:
        if not authorizer.allows_on_cluster(request, Operation.CLUSTER_ACTION):
            raise denial(Operation.CLUSTER_ACTION, ResourceType.TOPIC)
    elif not authorizer.allows(request, _READ, _TOPIC, topic):
        raise denial(_READ, _TOPIC)


def _sent_to(follower_id: int, partition: Partition, asked: FetchPartition) -> PartitionFetched:
    """No records: the consumer reads them there."""
    return PartitionFetched(
        asked.partition_index,
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        preferred_read_replica=follower_id,
    )


def _read_records(
    request: Request,
    message: FetchRequest,
    partition: Partition,
    asked: FetchPartition,
    left_bytes: int,
    *,
    may_exceed: bool,
    is_held_back: bool,
) -> PartitionFetched:
    """``is_held_back`` where a throttle allows no records."""
    log = partition.log
    high_watermark, stable = partition.high_watermark, partition.last_stable_offset
    offset = asked.fetch_offset
    if asked.last_fetched_epoch >= 0:
        diverging = _divergence(log, asked)
        if diverging is not None:
            return PartitionFetched(
                asked.partition_index, 0, high_watermark, stable, log.log_start_offset, diverging_epoch=diverging
            )
    is_consumer = message.replica_id < 0 and message.replica_id != _DEBUGGING
    is_committed = is_consumer and message.isolation_level == READ_COMMITTED
    bound = (stable if is_committed else high_watermark) if is_consumer else log.log_end_offset
    limit_bytes = max(min(asked.max_bytes, left_bytes), 0)
    lease = log.read(offset, limit_bytes, bound)
    if lease is not None and (is_held_back or (lease.size_bytes > limit_bytes and not may_exceed)):
        lease.give_back()
        lease = None
    try:
        return _fetched(request, partition, asked, lease, stable, is_committed)
    except BaseException:
        if lease is not None:
            lease.give_back()
        raise


def _divergence(log: PartitionLog, asked: FetchPartition) -> DivergingEpoch | None:
    """Where this log parts from the reader's, by the epoch of the reader's last record (R26).

    An offset that is deleted here is out of range, whatever the epochs say: there is nothing to go on from (R98).
    """
    is_newest = asked.last_fetched_epoch == log.epochs.latest
    if is_newest and log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
        return None
    epoch, end_offset = log.epochs.end_of(asked.last_fetched_epoch, log.log_end_offset)
    if epoch < 0 or end_offset < 0 or asked.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(
            f"{log.name} does not know epoch {asked.last_fetched_epoch} at offset {asked.fetch_offset}"
        )
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return DivergingEpoch(epoch, end_offset)
    return None


def _fetched(
    request: Request, partition: Partition, asked: FetchPartition, lease: Lease | None, stable: int, is_committed: bool
) -> PartitionFetched:
    log = partition.log
    aborted: tuple[AbortedTransaction, ...] | None = None
    if is_committed:
        aborted = ()
        if lease is not None:
            found = log.aborted_in(lease, asked.fetch_offset, stable)
            aborted = tuple(AbortedTransaction(entry.producer_id, entry.first_offset) for entry in found)
    if lease is not None and request.api_version < _FIRST_WITH_ZSTD:
        _check_no_zstd(lease)
    return PartitionFetched(
        asked.partition_index,
        0,
        partition.high_watermark,
        stable,
        log.log_start_offset,
        b"" if lease is None else _little_or_lent(lease),
        aborted,
    )


def _little_or_lent(lease: Lease) -> Sized:
    """A little that is in memory is taken at once: to ask whether it is there takes as long."""
    data = lease.read_cached() if lease.size_bytes <= INLINE_BYTES else None
    if data is None:
        return lease
    lease.give_back()
    return data


def _check_no_zstd(lease: Lease) -> None:
    """A client this old cannot open zstd; the first batch stands for the range, as in Kafka."""
    if read_header(lease.read_at(lease.position, HEADER_BYTES)).codec_id == Codec.ZSTD:
        raise UnsupportedCompression("zstd needs version 10 of Fetch")


def _give_back_others(read: _Read, news: list[Answered]) -> None:
    """What is not told is not sent."""
    if len(news) != len(read.answered):
        told = {key for key, _ in news}
        for key, fetched in read.answered:
            if isinstance(fetched.records, Lease) and key not in told:
                fetched.records.give_back()


def _add(topics: list[TopicFetched], key: PartitionKey, fetched: PartitionFetched) -> None:
    (name, topic_id), _ = key
    if topics and topics[-1].name == name and topics[-1].topic_id == topic_id:
        partitions = topics[-1].partitions
        assert isinstance(partitions, list)
        partitions.append(fetched)
    else:
        topics.append(TopicFetched(name, topic_id, [fetched]))


def _encoded(
    request: Request,
    topics: Sequence[TopicFetched],
    *,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> Response:
    return encode_fetch_response(
        request.api_version,
        request.correlation_id,
        topics,
        request.throttled_ms(),
        error_code=error_code,
        session_id=session_id,
        node_endpoints=endpoints,
    )


def _count(request: Request, counters: TopicCounters | None, fetched: PartitionFetched) -> None:
    if fetched.error_code:
        request.failed(fetched.error_code)
    if counters is not None:
        counters.fetch_requests += 1
        if fetched.error_code:
            counters.fetch_failures += 1
        elif fetched.records:
            counters.out_bytes += len(fetched.records)


def _known_code(request: Request, code: ErrorCode) -> ErrorCode:
    """Clients of old versions know no storage error, and look for another leader (R23)."""
    if code == ErrorCode.KAFKA_STORAGE_ERROR and request.api_version < _FIRST_WITH_STORAGE_ERROR:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code


def error_response(request: Request, message: FetchRequest, error: KafkaError) -> Response:
    """A session's error is told once for the whole answer; any other for each partition."""
    request.failed(error.code)
    if isinstance(error, FetchSessionError):
        return _encoded(request, [], error_code=error.code)
    topics = [
        TopicFetched(
            topic.name,
            topic.topic_id,
            [PartitionFetched(partition.partition_index, error.code, -1) for partition in topic.partitions],
        )
        for topic in message.topics
    ]
    return _encoded(request, topics, error_code=error.code)


API = Api(FETCH, "Fetch", VERSIONS, error_response, parse=parse_fetch_request)
