"""OffsetDelete (key 47), version 0.

Behaviour: removes committed offsets of a group; a topic that its members read is GROUP_SUBSCRIBED_TO_TOPIC, one that
does not exist UNKNOWN_TOPIC_OR_PARTITION. Up to 256 partitions are one batch; more are several, in turns of the loop.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.pending import Response
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.offset_outcomes import Outcome, partition_count, response_in_turns, response_with
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import OffsetDeleteRequest
from lamina.errors import ErrorCode, GroupIdNotFound, KafkaError
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import OFFSET_DELETE as API_KEY
from lamina.wire.building import response_shape

_PARTITIONS_AT_A_TIME = 256
"""To delete the offset of one takes about ten microseconds."""


def handle(metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    if len(message.topics) + sum(len(topic.partitions) for topic in message.topics) > _PARTITIONS_AT_A_TIME:
        return _handle_in_turns(metadata, groups, clocks, request, message)
    known: list[TopicPartition] = []
    outcome: Outcome = {}
    for topic in message.topics:
        count = partition_count(metadata, topic.name)
        for one in topic.partitions:
            _sort(topic.name, one.partition_index, count, known, outcome)

    def respond(errors: list[KafkaError | None]) -> Any:
        _note(known, errors, outcome)
        return response_with(API_KEY, request, message, outcome, error_code=ErrorCode.NONE)

    return _delete(groups, message.group_id, known).then(respond)


async def _handle_in_turns(
    metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any
) -> Any:
    """As above, for many partitions: some of them at a time."""
    turns = Turns(clocks)
    known: list[TopicPartition] = []
    outcome: Outcome = {}
    for topic in message.topics:
        count = partition_count(metadata, topic.name)
        for one in topic.partitions:
            _sort(topic.name, one.partition_index, count, known, outcome)
            await turns.step()
        await turns.step()
    # The group has to be there, whatever it is asked for.
    await _delete(groups, message.group_id, [])
    for start in range(0, len(known), _PARTITIONS_AT_A_TIME):
        some = known[start : start + _PARTITIONS_AT_A_TIME]
        try:
            _note(some, await _delete(groups, message.group_id, some), outcome)
        except GroupIdNotFound:
            # It went with its last offset: there is nothing left to be deleted.
            _note(some, [None] * len(some), outcome)
        await turns.step()
    return await response_in_turns(API_KEY, request, message, outcome, turns, error_code=ErrorCode.NONE)


def _sort(topic: str, index: int, count: int, known: list[TopicPartition], outcome: Outcome) -> None:
    """A partition that exists is known; what another one is told goes to ``outcome``."""
    if 0 <= index < count:
        known.append((topic, index))
    else:
        outcome[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _delete(groups: GroupCoordinator, group_id: str, known: list[TopicPartition]) -> Response:
    delete = OffsetDeleteRequest(group_id, tuple(known))
    return groups.shard_of(group_id).ask(lambda machine, waiter, now: machine.delete_offsets(delete, waiter))


def _note(known: list[TopicPartition], errors: list[KafkaError | None], outcome: Outcome) -> None:
    for key, error in zip(known, errors, strict=True):
        outcome[key] = ErrorCode.NONE if error is None else error.code


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, topics=())


API = Api(API_KEY, "OffsetDelete", range(1), error_response)
