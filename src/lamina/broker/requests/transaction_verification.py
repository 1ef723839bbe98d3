"""Which transactional records may be appended (KIP-890).

Where a batch of Produce, or offsets of TxnOffsetCommit, would begin a transaction in their partition, the transaction
coordinator is asked, here or on the broker that it is. Older clients have added the partition to the transaction first;
for newer ones (Produce 12, TxnOffsetCommit 5) the question adds it. Owns that question, and in which words a client is
told the answer. Must not know how the coordinator knows.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple

from lamina.broker.coordination.broker_batches import AskBroker
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.remote_verification import Answers, Question, RemoteVerification
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import TransactionalCommitRequest
from lamina.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    KafkaError,
    NotEnoughReplicas,
)
from lamina.log.producer_states import VerificationGuard
from lamina.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT, read_header
from lamina.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)
from lamina.topic_partition import TopicPartition
from lamina.wire.produce import PartitionRecords, ProduceRequest

_FIRST_PRODUCE_WITH_ABORTABLE = 11
_FIRST_PRODUCE_THAT_ADDS = 12
_FIRST_COMMIT_WITH_ABORTABLE = 4
_FIRST_COMMIT_THAT_ADDS = 5

_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)

Verified = Mapping[TopicPartition, VerificationGuard | KafkaError]
"""By partition: what lets its batch begin a transaction, or why it may not."""

NOTHING_TO_VERIFY: Verified = {}


class Unverified(NamedTuple):
    """What the coordinator has to be asked."""

    producer_id: int
    producer_epoch: int
    verifications: dict[TopicPartition, VerificationGuard]


class _Found:
    """What the batches of one request say."""

    def __init__(self) -> None:
        self.producers: set[tuple[int, int]] = set()
        self.verifications: dict[TopicPartition, VerificationGuard] = {}

    def unverified(self) -> Unverified | None:
        if len(self.producers) > 1:
            raise InvalidProducerIdMapping("the transactional batches of one request come from one producer")
        return Unverified(*self.producers.pop(), self.verifications) if self.verifications else None


class TransactionVerification:
    """Asks the transaction coordinator."""

    def __init__(
        self,
        metadata: Metadata,
        partitions: Partitions,
        transactions: TransactionCoordinator,
        ask_broker: AskBroker,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``ask_broker`` carries the question to a coordinator that is another broker."""
        self._metadata = metadata
        self._partitions = partitions
        self._transactions = transactions
        self._clocks = clocks
        self._loop = loop
        self._remote = RemoteVerification(ask_broker, loop)

    def begin(self, api_version: int, message: ProduceRequest) -> Unverified | None:
        """What has to be verified; ``None`` where each batch is part of a transaction that is open in its partition."""
        found = _Found()
        for topic, _, partitions in message.topics:
            for sent in partitions:
                self._begin_one(api_version, topic, sent, found)
        return found.unverified()

    async def begin_in_turns(self, api_version: int, message: ProduceRequest, turns: Turns) -> Unverified | None:
        """As above, for many partitions."""
        found = _Found()
        for topic, _, partitions in message.topics:
            for sent in partitions:
                self._begin_one(api_version, topic, sent, found)
                await turns.step()
        return found.unverified()

    def _begin_one(self, api_version: int, topic: str | None, sent: PartitionRecords, found: "_Found") -> None:
        index, records = sent
        partition = None if topic is None else self._partitions.find(topic, index)
        if partition is None or records is None or len(records) < HEADER_BYTES:
            return
        header = read_header(records)
        if not header.attributes & TRANSACTIONAL_BIT or header.producer_id < 0:
            return
        found.producers.add((header.producer_id, header.producer_epoch))
        verification = partition.log.producers.begin_verification(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            self._clocks.now_ms(),
            begins_at_zero=api_version >= _FIRST_PRODUCE_THAT_ADDS,
        )
        if verification is not None:
            found.verifications[partition.topic, index] = verification

    async def verify(self, api_version: int, transactional_id: str, unverified: Unverified) -> Verified:
        verifications = unverified.verifications
        may_add = api_version >= _FIRST_PRODUCE_THAT_ADDS
        if not may_add and not self._metadata.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
            return verifications
        answers = await self._ask_coordinator(
            transactional_id, unverified.producer_id, unverified.producer_epoch, list(verifications), may_add=may_add
        )
        verified: dict[TopicPartition, VerificationGuard | KafkaError] = {}
        for key, verification in verifications.items():
            refusal = answers[key]
            verified[key] = verification if refusal is None else _told_to_producer(refusal, api_version)
        return verified

    async def _ask_coordinator(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        may_add: bool,
    ) -> Answers:
        """Whether the partitions are in the producer's transaction; or add them.

        A client learns of the end of its transaction before the last marker is written, and begins the next one: where
        that adds partitions it is waited for here, for a short while.
        """
        deadline = self._loop.time() + self._metadata.settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS] / 1000
        while True:
            answers = await self._ask_once(
                Question(transactional_id, producer_id, producer_epoch, tuple(partitions), may_add)
            )
            is_pending = may_add and any(
                error is not None and error.code == ErrorCode.CONCURRENT_TRANSACTIONS for error in answers.values()
            )
            if not is_pending or self._partitions.is_closing or self._loop.time() >= deadline:
                return answers
            await asyncio.sleep(self._metadata.settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000)

    async def _ask_once(self, question: Question) -> Answers:
        coordinator_id = self._transactions.coordinator_elsewhere(question.transactional_id)
        if coordinator_id is None:
            return await self._transactions.verify(*question)
        return await self._remote.verify(coordinator_id, question)

    async def close(self) -> None:
        """Ask no other broker any more."""
        await self._remote.close()

    async def verify_commit(self, partition: Partition, commit: TransactionalCommitRequest) -> VerificationGuard | None:
        """What the offsets are appended with; raises why they may not be."""
        verification = partition.log.producers.begin_verification(
            commit.producer_id, commit.producer_epoch, 0, self._clocks.now_ms(), begins_at_zero=False
        )
        may_add = commit.api_version >= _FIRST_COMMIT_THAT_ADDS
        is_verified = self._metadata.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]
        if verification is None or not (may_add or is_verified):
            return verification
        key = (partition.topic, partition.index)
        answers = await self._ask_coordinator(
            commit.transactional_id, commit.producer_id, commit.producer_epoch, [key], may_add=may_add
        )
        refusal = answers[key]
        if refusal is not None:
            raise _translated(refusal, knows_abortable=commit.api_version >= _FIRST_COMMIT_WITH_ABORTABLE)
        return verification


def _told_to_producer(error: KafkaError, api_version: int) -> KafkaError:
    """The error in words that producers of this version know what to do about.

    What will pass is told as NOT_ENOUGH_REPLICAS: old clients try again at once, without asking for metadata.
    """
    is_concurrent = error.code == ErrorCode.CONCURRENT_TRANSACTIONS
    if error.code in _TRY_AGAIN or (is_concurrent and api_version < _FIRST_PRODUCE_THAT_ADDS):
        return NotEnoughReplicas(f"the transaction cannot be verified now: {error}")
    return _translated(error, knows_abortable=api_version >= _FIRST_PRODUCE_WITH_ABORTABLE)


def _translated(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    if error.code == ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch(str(error))
    if error.code == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return InvalidTransactionState(str(error))
    return error
