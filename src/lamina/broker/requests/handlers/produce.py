"""Produce (key 0), versions 3-13; 0 is advertised because old clients compress only then (KAFKA-18659).

Behaviour: each partition's one batch is validated record by record, appended, and answered with its offset.
acks 0 gets no answer, and an error closes the connection; acks 1 and all are answered once the batch is in the
log, and on disk where `flush.messages` says so. acks=all waits for all in-sync replicas: fewer than
`min.insync.replicas` are NOT_ENOUGH_REPLICAS before the append and NOT_ENOUGH_REPLICAS_AFTER_APPEND after it, and after
the timeout REQUEST_TIMED_OUT tells where the records are that may still be committed. A leader whose session is not
proven takes nothing but acks=all. Batches that are large once decompressed, that hold many records or that the topic
stores in another codec are prepared on a thread; the response of many partitions is encoded on one. A batch that begins
a transaction in its partition is verified with the transaction coordinator first. While the disk is nearly full every
batch for it gets POLICY_VIOLATION. A client above its quota is told how long to wait and muted for so long, with acks 0
too (S63).
Version notes: zstd needs v7; record errors are told from v8; who leads instead from v10; TRANSACTION_ABORTABLE from
v11; from v12 partitions need not be added to the transaction before; v13 has topic ids in place of names, and an id
that no topic has is UNKNOWN_TOPIC_ID.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence, Set
from uuid import UUID

from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.commits import CommitWait, all_committed, all_flushed
from lamina.broker.partitions.partition import CommitPoint, Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import check, denial
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.leader_hints import FIRST_PRODUCE_WITH_HINTS, IN_PRODUCE, current_leader, node_endpoints
from lamina.broker.requests.request import CloseConnection, Request, Response
from lamina.broker.requests.transaction_verification import (
    NOTHING_TO_VERIFY,
    TransactionVerification,
    Unverified,
    Verified,
)
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.broker.waits import Waits
from lamina.clocks import Clocks
from lamina.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    KafkaError,
    MessageTooLarge,
    NotEnoughReplicasAfterAppend,
    RecordsRejected,
    RequestTimedOut,
    StorageError,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
    UnknownTopicId,
    UnsupportedCompression,
)
from lamina.image.image import Image
from lamina.image.topic import INTERNAL_TOPICS
from lamina.log.producer_states import VerificationGuard
from lamina.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT, Codec, read_codec_and_count, read_header
from lamina.records.codecs import DEFAULT_LEVELS
from lamina.records.prepare import PreparedBatch, prepare_batch
from lamina.security.acls import Operation, ResourceType
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import PRODUCE
from lamina.wire.leaders import NodeEndpoint
from lamina.wire.produce import (
    FIRST_WITH_TOPIC_IDS,
    VERSIONS,
    PartitionProduced,
    PartitionRecords,
    ProduceRequest,
    RecordError,
    TopicProduced,
    TopicRecords,
    encode_produce_response,
    parse_produce_request,
)

logger = logging.getLogger(__name__)

_ADMIN_CLIENT = "__admin_client"
_FIRST_WITH_ZSTD = 7
_THREAD_BYTES = 64 * 1024
"""A compressed batch of this size takes about a millisecond to open."""
_PARTITIONS_AT_A_TIME = 8
"""Each may roll a log, which takes a fraction of a millisecond."""


_WRITE, _TOPIC = Operation.WRITE, ResourceType.TOPIC
"""Looked up once: for members of an enumeration that takes as long as to decide by them."""
_ATTRIBUTES_AT = 22
"""In a batch: the byte of its attributes that has the transactional bit."""
_MANY_PARTITIONS = 256
"""So many are looked up, and told, within a millisecond."""


class Produce:
    """The handler, with what it works on."""

    def __init__(
        self,
        metadata: Metadata,
        partitions: Partitions,
        verification: TransactionVerification,
        kernel_loading: KernelLoading,
        counters: Counters,
        threads: Threads,
        message_thread: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
        authorizer: Authorizer | None,
    ) -> None:
        self._authorizer = authorizer
        self._loop = loop
        self._metadata = metadata
        self._partitions = partitions
        self._verification = verification
        self._kernel_loading = kernel_loading
        self._counters = counters
        self._threads = threads
        self._message_thread = message_thread
        self._clocks = clocks

    def handle(self, request: Request, message: ProduceRequest) -> Response | Awaitable[Response]:
        if message.acks not in (-1, 0, 1):
            raise InvalidRequiredAcks(f"acks {message.acks} is none of -1, 0 and 1")
        authorizer = self._authorizer
        if authorizer is not None:
            _check_transactional(authorizer, request, message)
        if _are_many(message):
            request.holds_frame = True
            return self._handle_many(request, message)
        if authorizer is not None:
            denied = {name for topic in message.topics if (name := _denied(authorizer, request, topic)) is not None}
            if denied:
                request.holds_frame = True
                return self._handle_some(request, message, denied, Turns(self._clocks))
        if request.api_version >= FIRST_WITH_TOPIC_IDS:
            message = message._replace(topics=[self._named(topic) for topic in message.topics])
        if message.transactional_id is not None:
            unverified = self._verification.begin(request.api_version, message)
            if unverified is not None:
                request.holds_frame = True
                return self._handle_unverified(request, message, message.transactional_id, unverified)
        if self._takes_long(message.topics):
            request.holds_frame = True
            return self._handle_slowly(request, message, NOTHING_TO_VERIFY)
        now_ms = self._clocks.now_ms()
        uncommitted: list[tuple[Partition, CommitPoint]] = []
        topics = []
        for topic, topic_id, partitions in message.topics:
            produced = [
                _unknown_topic(request, topic_id, partition)
                if topic is None
                else self._produce(request, message, topic, topic_id, partition, None, now_ms, uncommitted)
                for partition in partitions
            ]
            topics.append(TopicProduced(topic, topic_id, produced))
        if len(uncommitted) == 1 and message.acks == -1 and request.charge is None:
            return self._answer_once_committed(request, message, topics, *uncommitted[0])
        if uncommitted:
            return self._answer_committed(request, message, topics, uncommitted)
        if request.charge is not None:
            _settle(request, message)
        return self._answer(request, message, topics, self._metadata.image)

    async def _handle_many(self, request: Request, message: ProduceRequest) -> Response:
        """As above, where even to look at all partitions would hold up the loop."""
        turns, denied = Turns(self._clocks), set[str]()
        if self._authorizer is not None:
            for topic in message.topics:
                name = _denied(self._authorizer, request, topic)
                if name is not None:
                    denied.add(name)
                await turns.step()
        return await self._handle_some(request, message, denied, turns)

    async def _handle_some(self, request: Request, message: ProduceRequest, denied: Set[str], turns: Turns) -> Response:
        """The partitions of topics that are not denied, and the refusal of the others."""
        verified = NOTHING_TO_VERIFY
        if request.api_version >= FIRST_WITH_TOPIC_IDS:
            topics = []
            for topic in message.topics:
                topics.append(self._named(topic))
                await turns.step()
            message = message._replace(topics=topics)
        if message.transactional_id is not None:
            allowed = message._replace(topics=[topic for topic in message.topics if topic.name not in denied])
            unverified = await self._verification.begin_in_turns(request.api_version, allowed, turns)
            if unverified is not None:
                verified = await self._verification.verify(request.api_version, message.transactional_id, unverified)
        if denied:
            refusal = denial(Operation.WRITE, ResourceType.TOPIC)
            refused = dict(verified)
            for topic in message.topics:
                if topic.name is not None and topic.name in denied:
                    refused |= {(topic.name, sent.partition_index): refusal for sent in topic.partitions}
                await turns.step()
            verified = refused
        return await self._handle_slowly(request, message, verified)

    def _named(self, topic: TopicRecords) -> TopicRecords:
        """The topic with the name that belongs to its id; none where no topic has the id."""
        if topic.topic_id is None:
            return topic
        try:
            return topic._replace(name=self._metadata.image.topic_with_id(topic.topic_id.bytes).name)
        except UnknownTopicId:
            return topic

    async def _handle_unverified(
        self, request: Request, message: ProduceRequest, transactional_id: str, unverified: Unverified
    ) -> Response:
        verified = await self._verification.verify(request.api_version, transactional_id, unverified)
        return await self._handle_slowly(request, message, verified)

    async def _handle_slowly(self, request: Request, message: ProduceRequest, verified: Verified) -> Response:
        """As above, for requests that would hold up the loop: large batches on a thread, many of them in turns."""
        uncommitted: list[tuple[Partition, CommitPoint]] = []
        topics = []
        done = 0
        for topic, topic_id, partitions in message.topics:
            produced = []
            for partition in partitions:
                if (done := done + 1) % _PARTITIONS_AT_A_TIME == 0:
                    await asyncio.sleep(0)
                if topic is None:
                    produced.append(_unknown_topic(request, topic_id, partition))
                    continue
                verification = verified.get((topic, partition.partition_index))
                if isinstance(verification, KafkaError):
                    self._count_failure(topic, partition, verification)
                    produced.append(_failed(request, partition.partition_index, verification))
                    continue
                prepared = await self._prepare_on_thread(topic, partition)
                now_ms = self._clocks.now_ms()
                produced.append(
                    self._produce(
                        request, message, topic, topic_id, partition, prepared, now_ms, uncommitted, verification
                    )
                )
            topics.append(TopicProduced(topic, topic_id, produced))
        if uncommitted:
            topics = await self._committed(request, message, topics, uncommitted)
        _settle(request, message)
        image = self._metadata.image
        if _are_many(message):
            return await self._message_thread.compute(lambda: self._answer(request, message, topics, image))
        return self._answer(request, message, topics, image)

    async def _prepare_on_thread(self, topic: str, sent: PartitionRecords) -> PreparedBatch | KafkaError | None:
        """The batch, or what is wrong with it; ``None`` where the loop may as well prepare it."""
        index, records = sent
        partition = self._partitions.find(topic, index)
        if partition is None or records is None or not self._is_slow(topic, sent):
            return None
        rules, now_ms, walk = partition.rules, self._clocks.now_ms(), self._kernel_loading.walk_records
        try:
            return await self._threads.run(lambda: prepare_batch(records, rules, now_ms, walk))
        except KafkaError as error:
            return error
        except Exception as error:
            return self._unexpected(topic, index, error)

    def _produce(
        self,
        request: Request,
        message: ProduceRequest,
        topic: str,
        topic_id: UUID | None,
        sent: PartitionRecords,
        prepared: PreparedBatch | KafkaError | None,
        now_ms: int,
        uncommitted: list[tuple[Partition, CommitPoint]],
        verification: VerificationGuard | None = None,
    ) -> PartitionProduced:
        """Append what was sent to one partition; its error is that partition's alone."""
        index, records = sent
        try:
            partition = self._partitions.get(topic, index)
            if topic_id is not None and topic_id != partition.topic_id:
                raise UnknownTopicId(f"{partition.log.name} has another topic id")
            if topic in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT:
                raise InvalidTopic(f"{topic} is internal: clients may not write to it")
            if message.acks == -1:
                partition.check_in_sync()
            else:
                partition.check_lease()
            if records is None:
                raise InvalidRecord("a Produce request without records")
            partition.free_space.check(len(records))
            if isinstance(prepared, KafkaError):
                raise prepared
            if prepared is None:
                prepared = prepare_batch(records, partition.rules, now_ms, self._kernel_loading.walk_records)
            if prepared.validated.header.attributes & TRANSACTIONAL_BIT and message.transactional_id is None:
                raise TransactionalIdAuthorizationFailed("transactional records came without a transactional id")
            if request.api_version < _FIRST_WITH_ZSTD and read_header(records).codec_id == Codec.ZSTD:
                raise UnsupportedCompression("zstd needs version 7 of Produce")
        except KafkaError as error:
            self._count_failure(topic, sent, error)
            return _failed(request, index, error)
        except Exception as error:
            unexpected = self._unexpected(topic, index, error)
            self._count_failure(topic, sent, unexpected)
            return _failed(request, index, unexpected)
        counters = partition.counters
        counters.produce_requests += 1
        try:
            appended = partition.append(prepared, now_ms, verification)
            if not (partition.is_committed() if message.acks == -1 else partition.is_flushed()):
                uncommitted.append((partition, partition.commit_point(appended.last_offset + 1)))
            counters.in_messages += prepared.validated.header.record_count
            counters.in_bytes += len(records)
            log_append_time_ms = -1
            if partition.rules.is_log_append_time:
                log_append_time_ms = appended.timestamp
            return PartitionProduced(
                index, 0, appended.first_offset, log_append_time_ms, partition.log.log_start_offset
            )
        except KafkaError as error:
            counters.produce_failures += 1
            return _failed(request, index, error)
        except Exception as error:
            counters.produce_failures += 1
            self._partitions.failed(topic, index, error)
            return _failed(request, index, StorageError(f"{topic}-{index} is offline: {error}"))

    def _count_failure(self, topic: str, sent: PartitionRecords, error: KafkaError) -> None:
        """What was refused before the log was asked; only of topics that exist."""
        partition = self._partitions.find(topic, sent.partition_index)
        if partition is not None:
            partition.counters.produce_requests += 1
            partition.counters.produce_failures += 1
            if isinstance(error, MessageTooLarge) and sent.records is not None:
                partition.counters.rejected_bytes += len(sent.records)

    def _unexpected(self, topic: str, index: int, error: Exception) -> UnknownServerError:
        """What a client's bytes led to before the log was touched is no reason to give up the partition."""
        self._counters.count_unexpected(Place.RECORDS)
        logger.error("a batch for %s-%d could not be prepared", topic, index, exc_info=error)
        return UnknownServerError("the broker failed unexpectedly; its log says how")

    def _takes_long(self, topics: Sequence[TopicRecords]) -> bool:
        if len(topics) == 1 and len(topics[0].partitions) == 1:
            return self._is_slow(topics[0].name, topics[0].partitions[0])
        if sum(len(topic.partitions) for topic in topics) > _PARTITIONS_AT_A_TIME:
            return True
        return any(self._is_slow(topic.name, partition) for topic in topics for partition in topic.partitions)

    def _is_slow(self, topic: str | None, sent: PartitionRecords) -> bool:
        """Whether preparing the batch would hold up the loop, by what its header claims."""
        index, records = sent
        if topic is None or records is None or len(records) < HEADER_BYTES:
            return False
        codec_id, record_count = read_codec_and_count(records)
        if self._kernel_loading.takes_long(record_count):
            return True
        is_large = len(records) >= _THREAD_BYTES
        if codec_id and is_large:
            return True
        partition = self._partitions.find(topic, index)
        if partition is None:
            return False
        rules = partition.rules
        if codec_id or is_large:
            # Compressing anew takes longest, and of a small compressed batch nobody knows how large it will be.
            return rules.codec not in (None, codec_id)
        # At the highest levels 64 KiB take 30 ms; at the default ones at most 2.
        return rules.codec is not None and rules.codec_level != DEFAULT_LEVELS.get(rules.codec)

    def _answer_once_committed(
        self,
        request: Request,
        message: ProduceRequest,
        topics: list[TopicProduced],
        partition: Partition,
        point: CommitPoint,
    ) -> LaterResponse:
        """As ``_answer_committed``, in the turn in which one partition is committed: as when a follower fetches."""
        later, began_ns = LaterResponse(self._loop), self._clocks.monotonic_ns()
        request.waits = waits = Waits()

        def committed(error: KafkaError | None) -> None:
            waits.threads_ns += self._clocks.monotonic_ns() - began_ns
            later.finish(lambda: made(error))

        def made(error: KafkaError | None) -> Response:
            if error is None:
                return self._answer(request, message, topics, self._metadata.image)
            failed = {(partition.topic, partition.index): error}
            told = [
                topic._replace(partitions=[_once_waited(request, topic.name, one, failed) for one in topic.partitions])
                for topic in topics
            ]
            return self._answer(request, message, told, self._metadata.image)

        later.give_up = CommitWait(partition, point, message.timeout_ms, committed, self._loop).give_up
        return later

    async def _answer_committed(
        self,
        request: Request,
        message: ProduceRequest,
        topics: list[TopicProduced],
        uncommitted: list[tuple[Partition, CommitPoint]],
    ) -> Response:
        """Response once these batches are committed."""
        topics = await self._committed(request, message, topics, uncommitted)
        _settle(request, message)
        return self._answer(request, message, topics, self._metadata.image)

    async def _committed(
        self,
        request: Request,
        message: ProduceRequest,
        topics: list[TopicProduced],
        uncommitted: list[tuple[Partition, CommitPoint]],
    ) -> list[TopicProduced]:
        """What is told of the partitions once these batches are committed, or cannot be."""
        if message.acks == -1:
            failed = await all_committed(uncommitted, self._clocks, timeout_ms=message.timeout_ms)
        else:
            failed = await all_flushed((partition for partition, _ in uncommitted), self._clocks)
        if not failed:
            return topics
        turns, told = Turns(self._clocks), []
        for topic in topics:
            partitions = []
            for done in topic.partitions:
                partitions.append(_once_waited(request, topic.name, done, failed))
                await turns.step()
            told.append(topic._replace(partitions=partitions))
        return told

    def _answer(self, request: Request, message: ProduceRequest, topics: list[TopicProduced], image: Image) -> Response:
        """Of many partitions on a thread."""
        if not request.error_code or request.api_version < FIRST_PRODUCE_WITH_HINTS:
            return _answer(request, message, topics)
        topics = [
            topic._replace(
                partitions=[
                    done._replace(current_leader=current_leader(image, topic.name, done.partition_index))
                    if topic.name is not None and done.error_code in IN_PRODUCE
                    else done
                    for done in topic.partitions
                ]
            )
            for topic in topics
        ]
        leaders = [done.current_leader for topic in topics for done in topic.partitions if done.current_leader]
        return _answer(request, message, topics, node_endpoints(image, leaders, request.listener_name))


def _are_many(message: ProduceRequest) -> bool:
    if len(message.topics) == 1:
        return len(message.topics[0].partitions) > _MANY_PARTITIONS
    return len(message.topics) + sum(len(topic.partitions) for topic in message.topics) > _MANY_PARTITIONS


def _settle(request: Request, message: ProduceRequest) -> None:
    """The client pays for what it sent, whatever became of it; the loop's time on acks=0 is free (S65)."""
    charge = request.charge
    if charge is not None:
        charge.produced(request)
        if message.acks == 0:
            request.charge = None
        else:
            request.throttled_ms()


def _check_transactional(authorizer: Authorizer, request: Request, message: ProduceRequest) -> None:
    """Raise where the client may not use its transactional id."""
    if _has_transactional_records(message):
        if message.transactional_id is None:
            raise TransactionalIdAuthorizationFailed("transactional records came without a transactional id")
        check(authorizer, request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)


def _denied(authorizer: Authorizer, request: Request, topic: TopicRecords) -> str | None:
    """The topic's name where the client may not write to it."""
    name = authorizer.topic_name(topic.topic_id) if topic.name is None else topic.name
    return None if name is None or authorizer.allows(request, _WRITE, _TOPIC, name) else name


def _has_transactional_records(message: ProduceRequest) -> bool:
    """Each batch says so itself (S80)."""
    return any(
        records is not None and len(records) >= HEADER_BYTES and records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT
        for topic in message.topics
        for _, records in topic.partitions
    )


def _failed(request: Request, index: int, error: KafkaError) -> PartitionProduced:
    request.failed(error.code)
    record_errors: tuple[RecordError, ...] = ()
    if isinstance(error, RecordsRejected):
        record_errors = tuple(RecordError(number, text) for number, text in error.record_errors)
    return PartitionProduced(index, error.code, -1, record_errors=record_errors, error_message=str(error))


def _once_waited(
    request: Request, topic: str | None, produced: PartitionProduced, failed: Mapping[TopicPartition, KafkaError]
) -> PartitionProduced:
    """What is told of a partition, after a wait in which these failed."""
    error = None if topic is None else failed.get((topic, produced.partition_index))
    return produced if error is None else _uncommitted(request, produced, error)


def _uncommitted(request: Request, produced: PartitionProduced, error: KafkaError) -> PartitionProduced:
    """What was appended and cannot be acknowledged. Where it may still be committed, the client is told its offset."""
    failed = _failed(request, produced.partition_index, error)
    if isinstance(error, (RequestTimedOut, NotEnoughReplicasAfterAppend)):
        return failed._replace(base_offset=produced.base_offset, log_start_offset=produced.log_start_offset)
    return failed


def _unknown_topic(request: Request, topic_id: UUID | None, sent: PartitionRecords) -> PartitionProduced:
    return _failed(request, sent.partition_index, UnknownTopicId(f"there is no topic with id {topic_id}"))


def _answer(
    request: Request,
    message: ProduceRequest,
    topics: list[TopicProduced],
    endpoints: tuple[NodeEndpoint, ...] = (),
) -> Response:
    if message.acks == 0:
        for topic in topics:
            for partition in topic.partitions:
                if partition.error_code:
                    raise CloseConnection(
                        f"a batch for {topic.name or topic.topic_id}-{partition.partition_index} sent with acks=0 "
                        f"was refused: {partition.error_message}"
                    )
        return None
    return [
        encode_produce_response(request.api_version, request.correlation_id, topics, request.throttled_ms(), endpoints)
    ]


def error_response(request: Request, message: ProduceRequest, error: KafkaError) -> Response:
    topics = [
        TopicProduced(topic, topic_id, [_failed(request, sent.partition_index, error) for sent in partitions])
        for topic, topic_id, partitions in message.topics
    ]
    return _answer(request, message, topics)


API = Api(
    PRODUCE, "Produce", VERSIONS, error_response, parse=parse_produce_request, refers_to_frame=True, advertised_from=0
)
