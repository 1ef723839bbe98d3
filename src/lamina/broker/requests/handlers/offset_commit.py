"""OffsetCommit (key 8), versions 2-10.

Behaviour: a partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, the others are committed if their group lets
the member: one record each, answered when they are committed. Up to 256 partitions are one batch; more are several, in
turns of the loop. One batch that is too large is INVALID_COMMIT_OFFSET_SIZE.
Version notes: a retention of the commit's own in v2-4; leader epochs from v6; static members from v7; member epochs of
the consumer protocol from v9; v10 has topic ids in place of names, and an id that no topic has is UNKNOWN_TOPIC_ID.
"""

from collections.abc import Iterator
from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.pending import Response
from lamina.broker.coordination.shard import DecisionTooLarge
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.offset_outcomes import (
    Outcome,
    TopicKey,
    one_outcome,
    partition_count,
    response_in_turns,
    response_with,
    topic_key,
    topic_name,
)
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import CommittedPartition, OffsetCommitRequest
from lamina.errors import ErrorCode, InvalidCommitOffsetSize, KafkaError
from lamina.records.batch import NO_LEADER_EPOCH
from lamina.wire.api_keys import OFFSET_COMMIT as API_KEY
from lamina.wire.encoder import milliseconds

_NO_RETENTION = -1
_PARTITIONS_AT_A_TIME = 256
"""To commit one takes about 25 microseconds."""

Known = list[tuple[TopicKey, CommittedPartition]]


def are_many(message: Any) -> bool:
    """Whether the partitions are too many for one turn of the loop."""
    return len(message.topics) + sum(len(topic.partitions) for topic in message.topics) > _PARTITIONS_AT_A_TIME


def batches(known: Known) -> Iterator[Known]:
    """As many at a time as are committed in one turn."""
    for start in range(0, len(known), _PARTITIONS_AT_A_TIME):
        yield known[start : start + _PARTITIONS_AT_A_TIME]


def handle(metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    if are_many(message):
        return _handle_in_turns(metadata, groups, clocks, request, message)
    known, outcome = sort_partitions(metadata, message)
    if not known:
        return response_with(API_KEY, request, message, outcome)

    def respond(errors: list[KafkaError | None]) -> Any:
        note(known, errors, outcome)
        return response_with(API_KEY, request, message, outcome)

    return _commit(groups, request, message, known).then(respond)


async def _handle_in_turns(
    metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any
) -> Any:
    """As above, for many partitions: some of them at a time."""
    turns = Turns(clocks)
    known, outcome = await sort_in_turns(metadata, message, turns)
    for some in batches(known):
        note(some, await _commit(groups, request, message, some), outcome)
        await turns.step()
    return await response_in_turns(API_KEY, request, message, outcome, turns)


def _commit(groups: GroupCoordinator, request: Request, message: Any, known: Known) -> Response:
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
    shard = groups.shard_of(message.group_id)
    try:
        return shard.ask(lambda machine, waiter, now: machine.commit(commit, waiter, now))
    except DecisionTooLarge as error:
        raise InvalidCommitOffsetSize(str(error)) from error


def note(known: Known, errors: list[KafkaError | None], outcome: Outcome) -> None:
    for (key, one), error in zip(known, errors, strict=True):
        outcome[key, one.partition] = ErrorCode.NONE if error is None else error.code


def sort_partitions(metadata: Metadata, message: Any) -> tuple[Known, Outcome]:
    """Those that exist, and what the others are told."""
    outcome: Outcome = {}
    known = [one for topic in message.topics for one in _sorted_topic(metadata, topic, outcome)]
    return known, outcome


async def sort_in_turns(metadata: Metadata, message: Any, turns: Turns) -> tuple[Known, Outcome]:
    """As above, for many."""
    known: Known = []
    outcome: Outcome = {}
    for topic in message.topics:
        for one in _sorted_topic(metadata, topic, outcome):
            known.append(one)
            await turns.step()
        await turns.step()
    return known, outcome


def _sorted_topic(metadata: Metadata, topic: Any, outcome: Outcome) -> Iterator[tuple[TopicKey, CommittedPartition]]:
    """Its partitions that exist; what the others are told goes to ``outcome``."""
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
            getattr(one, "committed_leader_epoch", NO_LEADER_EPOCH),
            one.committed_metadata,
        )
        yield key, committed


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_with(API_KEY, request, message, one_outcome(message, error.code))


API = Api(API_KEY, "OffsetCommit", range(2, 11), error_response)
