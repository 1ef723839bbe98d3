"""OffsetCommit (key 8), versions 2-10.

Behaviour: a partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, the others are committed if their group lets
the member: one record each, one batch for all, answered when they are committed.
Version notes: a retention of the commit's own in v2-4; leader epochs from v6; static members from v7; member epochs of
the consumer protocol from v9; v10 has topic ids in place of names, and an id that no topic has is UNKNOWN_TOPIC_ID.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.shard import DecisionTooLarge
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.offset_outcomes import (
    Outcome,
    TopicKey,
    one_outcome,
    partition_count,
    response_with,
    topic_key,
    topic_name,
)
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import CommittedPartition, OffsetCommitRequest
from lamina.errors import ErrorCode, InvalidCommitOffsetSize, KafkaError
from lamina.wire.encoder import milliseconds

API_KEY = 8
_NO_EPOCH = -1
_NO_RETENTION = -1


def handle(metadata: Metadata, groups: GroupCoordinator, request: Request, message: Any) -> Any:
    known, outcome = sort_partitions(metadata, message)
    if not known:
        return response_with(API_KEY, request, message, outcome)
    retention_ms = milliseconds(message.retention_time) if hasattr(message, "retention_time") else _NO_RETENTION
    commit = OffsetCommitRequest(
        message.group_id,
        message.member_id,
        message.generation_id_or_member_epoch,
        getattr(message, "group_instance_id", None),
        tuple(one for _, one in known),
        None if retention_ms == _NO_RETENTION else retention_ms,
        request.api_version,
    )

    def respond(errors: list[KafkaError | None]) -> Any:
        for (key, one), error in zip(known, errors, strict=True):
            outcome[key, one.partition] = ErrorCode.NONE if error is None else error.code
        return response_with(API_KEY, request, message, outcome)

    shard = groups.shard_of(message.group_id)
    try:
        return shard.ask(lambda machine, waiter, now: machine.commit(commit, waiter, now)).then(respond)
    except DecisionTooLarge as error:
        raise InvalidCommitOffsetSize(str(error)) from error


def sort_partitions(metadata: Metadata, message: Any) -> tuple[list[tuple[TopicKey, CommittedPartition]], Outcome]:
    """Those that exist, and what the others are told."""
    known: list[tuple[TopicKey, CommittedPartition]] = []
    outcome: Outcome = {}
    for topic in message.topics:
        key = topic_key(topic)
        name = topic_name(metadata, key)
        count = 0 if name is None else partition_count(metadata, name)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for one in topic.partitions:
            if name is None or not 0 <= one.partition_index < count:
                outcome[key, one.partition_index] = unknown
                continue
            committed = CommittedPartition(
                name,
                one.partition_index,
                one.committed_offset,
                getattr(one, "committed_leader_epoch", _NO_EPOCH),
                one.committed_metadata,
            )
            known.append((key, committed))
    return known, outcome


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_with(API_KEY, request, message, one_outcome(message, error.code))


API = Api(API_KEY, "OffsetCommit", range(2, 11), error_response)
