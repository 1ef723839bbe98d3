"""Which offsets may be committed in a transaction (KIP-890): the group's partition must be part of it.

Up to version 3 of TxnOffsetCommit the client has added the partition before, from version 5 on the question adds it.
Owns that question for offsets, and in which words a client is told the answer. Must not know how the coordinator knows.
"""

from lamina.broker.node import Node
from lamina.broker.partitions.partition import Partition
from lamina.broker.requests.produce_verification import ask_coordinator
from lamina.coordinators.group_requests import TransactionalCommitRequest
from lamina.errors import ErrorCode, InvalidProducerEpoch, InvalidTransactionState, KafkaError
from lamina.log.verification import Verification
from lamina.settings.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE

_FIRST_WITH_ABORTABLE = 4
_FIRST_THAT_ADDS = 5


async def verify_commit(node: Node, partition: Partition, commit: TransactionalCommitRequest) -> Verification | None:
    """What the offsets are appended with; raises why they may not be."""
    verification = partition.log.producers.begin_verification(
        commit.producer_id, commit.producer_epoch, 0, node.now_ms(), begins_at_zero=False
    )
    may_add = commit.api_version >= _FIRST_THAT_ADDS
    if verification is None or not (may_add or node.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        return verification
    key = (partition.topic, partition.index)
    answers = await ask_coordinator(
        node, commit.transactional_id, commit.producer_id, commit.producer_epoch, [key], may_add=may_add
    )
    refusal = answers[key]
    if refusal is not None:
        raise _told(refusal, commit.api_version)
    return verification


def _told(error: KafkaError, api_version: int) -> KafkaError:
    if error.code == ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch(str(error))
    if error.code == ErrorCode.TRANSACTION_ABORTABLE and api_version < _FIRST_WITH_ABORTABLE:
        return InvalidTransactionState(str(error))
    return error
