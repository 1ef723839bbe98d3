"""Fetch (key 1), versions 4-18.

Behaviour: long poll until `min_bytes` or `max_wait_ms`; records leave as file ranges; consumers see up to the
high watermark, or the last stable offset with the aborted transactions they have to skip; incremental sessions
as in KIP-227. The first partition with records may exceed the limits by one batch, no other may. Many partitions are
read and answered in turns of the loop.
Version notes: sessions from v7, leader epochs from v9, zstd from v10, topic ids in place of names from v13; what a
follower says of its directory (v17) and its high watermark (v18) is not looked at.
Not done: follower fetches and racks (one replica), tiered offsets.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from lamina.broker.counters import Counters, TopicCounters
from lamina.broker.partitions.parked_fetch import ParkedFetch
from lamina.broker.partitions.partition import READ_COMMITTED, Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.fetch_sessions import PARTITIONS_AT_A_TIME, Fetching, FetchSessions, PartitionKey
from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads, giving_way
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import (
    ErrorCode,
    FetchSessionError,
    InconsistentTopicId,
    KafkaError,
    StorageError,
    UnsupportedCompression,
)
from lamina.log.lease import Lease
from lamina.records.batch import HEADER_BYTES, Codec, read_header
from lamina.wire.fetch_request import (
    API_KEY,
    FIRST_WITH_TOPIC_IDS,
    VERSIONS,
    FetchPartition,
    FetchRequest,
    parse_fetch_request,
)
from lamina.wire.fetch_response import (
    AbortedTransaction,
    DivergingEpoch,
    PartitionFetched,
    TopicFetched,
    encode_fetch_response,
)

_FIRST_WITH_ZSTD = 10


class _Read:
    """One look at all partitions of a fetch."""

    __slots__ = ("answered", "cold", "has_error", "partitions", "size_bytes", "topics")

    def __init__(self) -> None:
        self.answered: list[tuple[PartitionKey, PartitionFetched]] = []
        self.partitions: list[tuple[Partition, int]] = []
        """Each with its ``grown_bytes`` at that time."""
        self.topics: list[TopicCounters | None] = []
        """Whose partitions were asked for, in the order of ``answered``; ``None`` where there is no such partition."""
        self.size_bytes = 0
        self.has_error = False
        self.cold: list[Lease] = []

    def give_back(self) -> None:
        for _, fetched in self.answered:
            if isinstance(fetched.records, Lease):
                fetched.records.give_back()


class Fetch:
    """The handler, with what it works on."""

    def __init__(
        self,
        partitions: Partitions,
        fetch_sessions: FetchSessions,
        fetch_max_bytes: int,
        counters: Counters,
        threads: Threads,
        message_thread: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._partitions = partitions
        self._fetch_sessions = fetch_sessions
        self._fetch_max_bytes = fetch_max_bytes
        self._counters = counters
        self._threads = threads
        self._message_thread = message_thread
        self._clocks = clocks
        self._loop = loop

    def handle(self, request: Request, message: FetchRequest) -> Response | Awaitable[Response]:
        uses_topic_ids = request.api_version >= FIRST_WITH_TOPIC_IDS
        fetching = self._fetch_sessions.begin(message, uses_topic_ids, self._clocks.monotonic_ms())
        if len(fetching.asked) > PARTITIONS_AT_A_TIME:
            return self._handle_many(request, message, fetching)
        read = _Read()
        for key, asked in fetching.asked:
            self._read_one(request, message, key, asked, read)
        if not self._is_enough(message, fetching, read):
            read.give_back()
            return self._park(request, message, fetching, read)
        if read.cold:
            # A task that is cancelled before it begins never runs: it reads again, and begins without leases.
            read.give_back()
            return self._answer_cold(request, message, fetching)
        return _answer(request, fetching, read)

    def _is_enough(self, message: FetchRequest, fetching: Fetching, read: _Read) -> bool:
        """Whether to answer now; not if there is too little and the client would rather wait."""
        if read.size_bytes >= message.min_bytes or read.has_error or not fetching.asked:
            return True
        return message.max_wait_ms <= 0 or self._partitions.is_closing

    async def _handle_many(self, request: Request, message: FetchRequest, fetching: Fetching) -> Response:
        """As above, where one turn of the loop would be too long for all partitions."""
        await fetching.remember_in_turns(Turns(self._clocks))
        read = await self._read(request, message, fetching)
        read.give_back()
        if self._is_enough(message, fetching, read):
            return await self._answer_cold(request, message, fetching)
        return await self._park(request, message, fetching, read)

    async def _park(self, request: Request, message: FetchRequest, fetching: Fetching, read: _Read) -> Response:
        deadline = self._loop.time() + message.max_wait_ms / 1000
        is_committed = message.isolation_level == READ_COMMITTED
        may_wait = True
        while may_wait and not self._partitions.is_closing and self._loop.time() < deadline:
            parked = ParkedFetch(self._loop, message.min_bytes - read.size_bytes, is_committed=is_committed)
            began_ns = self._clocks.monotonic_ns()
            self._counters.parked_fetches += 1
            request.park(parked.stop_waiting)
            try:
                may_wait = await parked.wait(read.partitions, deadline)
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
            if read.size_bytes >= message.min_bytes or read.has_error:
                break
        return await self._answer_cold(request, message, fetching)

    async def _answer_cold(self, request: Request, message: FetchRequest, fetching: Fetching) -> Response:
        """Bring what is not in the page cache there on a thread, so that sending it does not hold up the loop."""
        read = await self._read(request, message, fetching)
        while True:
            try:
                for lease in read.cold:
                    await self._threads.run(lease.load)
                if len(fetching.asked) > PARTITIONS_AT_A_TIME:
                    return await self._answer_in_turns(request, fetching, read)
                return _answer(request, fetching, read)
            except StorageError:
                # A log that cannot be read is offline by now, which the next look tells.
                read.give_back()
                read = await self._read(request, message, fetching)
            except BaseException:
                read.give_back()
                raise

    async def _answer_in_turns(self, request: Request, fetching: Fetching, read: _Read) -> Response:
        """As ``_answer``, for many partitions."""
        turns = Turns(self._clocks)
        for counters, (_, fetched) in zip(read.topics, read.answered, strict=True):
            _count(request, counters, fetched)
            await turns.step()
        news = await fetching.news_in_turns(read.answered, turns)
        _give_back_others(read, news)
        topics: list[TopicFetched] = []
        for key, fetched in news:
            _add(topics, key, fetched)
            await turns.step()

        def encode() -> Response:
            with giving_way():
                return _encoded(request, topics, session_id=fetching.session_id)

        return await self._message_thread.run(encode)

    async def _read(self, request: Request, message: FetchRequest, fetching: Fetching) -> _Read:
        """Look at all partitions; if they are many, at a few in each turn of the loop."""
        read = _Read()
        turns = Turns(self._clocks) if len(fetching.asked) > PARTITIONS_AT_A_TIME else None
        try:
            for key, asked in fetching.asked:
                self._read_one(request, message, key, asked, read)
                if turns is not None:
                    await turns.step()
        except BaseException:
            read.give_back()
            raise
        return read

    def _read_one(
        self, request: Request, message: FetchRequest, key: PartitionKey, asked: FetchPartition, read: _Read
    ) -> None:
        left_bytes = min(message.max_bytes, self._fetch_max_bytes) - read.size_bytes
        found = len(read.partitions)
        fetched = self._read_partition(request, message, key, asked, left_bytes, not read.size_bytes, read.partitions)
        read.answered.append((key, fetched))
        read.topics.append(read.partitions[-1][0].counters if len(read.partitions) > found else None)
        if fetched.error_code != 0 or fetched.diverging_epoch is not None:
            read.has_error = True
        if isinstance(fetched.records, Lease):
            read.size_bytes += fetched.records.size_bytes
            if not fetched.records.is_cached():
                read.cold.append(fetched.records)

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
        topic = name or str(topic_id)
        try:
            topic = self._partitions.name_of(topic_id) if name is None else name
            partition = self._partitions.get(topic, index)
            if topic_id is not None and topic_id != partition.topic_id:
                raise InconsistentTopicId(f"{partition.log.name} has another topic id")
            partition.check_online()
            partition.check_epoch(asked.current_leader_epoch)
            partitions.append((partition, partition.grown_bytes))
            return _read_records(request, message, partition, asked, left_bytes, may_exceed)
        except KafkaError as error:
            return PartitionFetched(index, error.code, -1)
        except Exception as error:
            self._partitions.failed(topic, index, error)
            return PartitionFetched(index, ErrorCode.KAFKA_STORAGE_ERROR, -1)


def _read_records(
    request: Request,
    message: FetchRequest,
    partition: Partition,
    asked: FetchPartition,
    left_bytes: int,
    may_exceed: bool,
) -> PartitionFetched:
    log = partition.log
    high_watermark, stable = partition.high_watermark, partition.last_stable_offset
    offset = asked.fetch_offset
    if asked.last_fetched_epoch >= 0:
        end = log.epochs.end_of(asked.last_fetched_epoch, log.log_end_offset)
        if end.epoch < 0 and asked.last_fetched_epoch <= partition.leader_epoch:
            end = end._replace(epoch=asked.last_fetched_epoch, start_offset=log.log_end_offset)
        if end.epoch < asked.last_fetched_epoch or end.start_offset < offset:
            diverging = DivergingEpoch(end.epoch, end.start_offset)
            return PartitionFetched(
                asked.partition_index, 0, high_watermark, stable, log.log_start_offset, diverging_epoch=diverging
            )
    is_committed = message.isolation_level == READ_COMMITTED
    bound = stable if is_committed else high_watermark
    limit_bytes = max(min(asked.max_bytes, left_bytes), 0)
    lease = log.read(offset, limit_bytes, bound)
    if lease is not None and lease.size_bytes > limit_bytes and not may_exceed:
        lease.give_back()
        lease = None
    try:
        return _fetched(request, partition, asked, lease, stable, is_committed)
    except BaseException:
        if lease is not None:
            lease.give_back()
        raise


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
        b"" if lease is None else lease,
        aborted,
    )


def _check_no_zstd(lease: Lease) -> None:
    """A client this old cannot open zstd; the first batch stands for the range, as in Kafka."""
    if read_header(lease.read_at(lease.position, HEADER_BYTES)).codec_id == Codec.ZSTD:
        raise UnsupportedCompression("zstd needs version 10 of Fetch")


def _answer(request: Request, fetching: Fetching, read: _Read) -> Response:
    for counters, (_, fetched) in zip(read.topics, read.answered, strict=True):
        _count(request, counters, fetched)
    news = fetching.news(read.answered)
    _give_back_others(read, news)
    topics: list[TopicFetched] = []
    for key, fetched in news:
        _add(topics, key, fetched)
    return _encoded(request, topics, session_id=fetching.session_id)


def _give_back_others(read: _Read, news: list[tuple[PartitionKey, PartitionFetched]]) -> None:
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


def _encoded(request: Request, topics: Sequence[TopicFetched], *, error_code: int = 0, session_id: int = 0) -> Response:
    return encode_fetch_response(
        request.api_version,
        request.correlation_id,
        topics,
        request.throttle_ms,
        error_code=error_code,
        session_id=session_id,
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


API = Api(API_KEY, "Fetch", VERSIONS, error_response, parse=parse_fetch_request)
