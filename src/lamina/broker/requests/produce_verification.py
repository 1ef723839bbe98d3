"""Which transactional batches of a Produce request may be appended (KIP-890).

Where a batch would begin a transaction in its partition, the transaction coordinator is asked: clients up to version
11 have added the partition to the transaction before, for those of version 12 the question adds it. Owns that question,
and in which words a client is told the answer. Must not know how the coordinator knows.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple

from lamina.broker.node import Node
from lamina.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    KafkaError,
    NotEnoughReplicas,
)
from lamina.image.topic import TopicPartition
from lamina.log.verification import Verification
from lamina.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT, read_header
from lamina.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)
from lamina.wire.produce import ProduceRequest

_FIRST_WITH_ABORTABLE = 11
_FIRST_THAT_ADDS = 12

_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

Verified = Mapping[TopicPartition, Verification | KafkaError]
"""By partition: what lets its batch begin a transaction, or why it may not."""

NOTHING_TO_VERIFY: Verified = {}

Answers = Mapping[TopicPartition, KafkaError | None]


class Unverified(NamedTuple):
    """What the coordinator has to be asked."""

    producer_id: int
    producer_epoch: int
    verifications: dict[TopicPartition, Verification]


def begin_verification(node: Node, api_version: int, message: ProduceRequest) -> Unverified | None:
    """What has to be verified; ``None`` where each batch is part of a transaction that is open in its partition."""
    producers: set[tuple[int, int]] = set()
    verifications: dict[TopicPartition, Verification] = {}
    for topic, partitions in message.topics:
        for index, records in partitions:
            partition = node.partitions.find(topic, index)
            if partition is None or records is None or len(records) < HEADER_BYTES:
                continue
            header = read_header(records)
            if not header.attributes & TRANSACTIONAL_BIT or header.producer_id < 0:
                continue
            producers.add((header.producer_id, header.producer_epoch))
            verification = partition.log.producers.begin_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                node.now_ms(),
                begins_at_zero=api_version >= _FIRST_THAT_ADDS,
            )
            if verification is not None:
                verifications[topic, index] = verification
    if len(producers) > 1:
        raise InvalidProducerIdMapping("the transactional batches of one request come from one producer")
    return Unverified(*producers.pop(), verifications) if verifications else None


async def verify(node: Node, api_version: int, transactional_id: str, unverified: Unverified) -> Verified:
    verifications = unverified.verifications
    may_add = api_version >= _FIRST_THAT_ADDS
    if not may_add and not node.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
        return verifications
    answers = await ask_coordinator(
        node, transactional_id, unverified.producer_id, unverified.producer_epoch, list(verifications), may_add=may_add
    )
    verified: dict[TopicPartition, Verification | KafkaError] = {}
    for key, verification in verifications.items():
        refusal = answers[key]
        verified[key] = verification if refusal is None else _told(refusal, api_version)
    return verified


async def ask_coordinator(
    node: Node,
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
    deadline = node.loop.time() + node.settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS] / 1000
    while True:
        answers = await node.transactions.verify(transactional_id, producer_id, producer_epoch, partitions, may_add)
        is_pending = may_add and any(
            error is not None and error.code == ErrorCode.CONCURRENT_TRANSACTIONS for error in answers.values()
        )
        if not is_pending or node.is_stopping or node.loop.time() >= deadline:
            return answers
        await asyncio.sleep(node.settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000)


def _told(error: KafkaError, api_version: int) -> KafkaError:
    """The error in words that producers of this version know what to do about.

    What will pass is told as NOT_ENOUGH_REPLICAS: old clients try again at once, without asking for metadata.
    """
    if error.code in _TRY_AGAIN or (error.code == ErrorCode.CONCURRENT_TRANSACTIONS and api_version < _FIRST_THAT_ADDS):
        return NotEnoughReplicas(f"the transaction cannot be verified now: {error}")
    if error.code == ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch(str(error))
    if error.code == ErrorCode.TRANSACTION_ABORTABLE and api_version < _FIRST_WITH_ABORTABLE:
        return InvalidTransactionState(str(error))
    return error
