"""OffsetDelete (key 47), version 0.

Behaviour: removes committed offsets of a group; a topic that its members read is GROUP_SUBSCRIBED_TO_TOPIC, one that
does not exist UNKNOWN_TOPIC_OR_PARTITION.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.offset_outcomes import partition_count, response_with
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import OffsetDeleteRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.building import response_shape

API_KEY = 47


def handle(metadata: Metadata, groups: GroupCoordinator, request: Request, message: Any) -> Any:
    known, outcome = [], {}
    for topic in message.topics:
        count = partition_count(metadata, topic.name)
        for one in topic.partitions:
            if 0 <= one.partition_index < count:
                known.append((topic.name, one.partition_index))
            else:
                outcome[topic.name, one.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    delete = OffsetDeleteRequest(message.group_id, tuple(known))

    def respond(errors: list[KafkaError | None]) -> Any:
        for key, error in zip(known, errors, strict=True):
            outcome[key] = ErrorCode.NONE if error is None else error.code
        return response_with(API_KEY, request, message, outcome, error_code=ErrorCode.NONE)

    shard = groups.shard_of(message.group_id)
    return shard.ask(lambda machine, waiter, now: machine.delete_offsets(delete, waiter)).then(respond)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, topics=())


API = Api(API_KEY, "OffsetDelete", range(1), error_response)
