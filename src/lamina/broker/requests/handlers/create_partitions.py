"""CreatePartitions (key 37), versions 0-3.

Behaviour: topics get more partitions, in one change, ready when the answer goes out. The count is the new total;
one that is no increase is INVALID_PARTITIONS. Replicas may be assigned by hand, for the new partitions only. A
topic that is named twice gets INVALID_REQUEST. With `validate_only` nothing is made. A client above its quota of
changes gets THROTTLING_QUOTA_EXCEEDED for each topic; with `validate_only` too (S64).
Version notes: below v3 what exceeds a quota is done all the same, and the client told to wait; else the versions differ
in their encoding only.
Not done: the timeout is not looked at.
"""

from collections import Counter
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import AT_ONCE
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.requests.api import Api
from lamina.broker.requests.client_quotas import ClientQuotas, TopicChanges
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.controller.placement import place_more
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.assignments import check_more_partitions, check_total_partitions
from lamina.image.changes import add_partitions
from lamina.image.image import Image
from lamina.wire.api_keys import CREATE_PARTITIONS as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_STRICT = 3


async def handle(
    metadata: Metadata,
    directories: LogDirectories,
    client_quotas: ClientQuotas,
    message_thread: Threads,
    clocks: Clocks,
    request: Request,
    message: Any,
) -> Any:
    changes = client_quotas.changes(request, is_strict=request.api_version >= _FIRST_STRICT)
    errors: dict[str, KafkaError | None] = {}

    async def change(image: Image) -> Image:
        errors.clear()
        image_before = image
        named = Counter(asked.name for asked in message.topics)
        async for asked in in_turns(message.topics, clocks):
            try:
                if named[asked.name] > 1:
                    raise InvalidRequest(f"topic {asked.name!r} is named more than once")
                image = await _with_more(directories, changes, message_thread, image, asked)
                errors[asked.name] = None
            except KafkaError as error:
                errors[asked.name] = error.without_frames()
        check_total_partitions(
            len(image.topics[name].partitions) - len(image_before.topics[name].partitions)
            for name, error in errors.items()
            if error is None
        )
        return image

    if message.validate_only:
        await change(metadata.image)
    else:
        await metadata.change(change)
    shape = response_shape(API_KEY, request.api_version)
    one = shape.of("results")
    results = [_result(one, name, error) async for name, error in in_turns(errors.items(), clocks)]
    return shape(results=tuple(results))


async def _with_more(
    directories: LogDirectories, changes: TopicChanges, message_thread: Threads, image: Image, asked: Any
) -> Image:
    topic = image.topic(asked.name)

    def with_more() -> Image:
        by_hand = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
        assignments = check_more_partitions(image, topic, asked.count, by_hand)
        if assignments is None:
            assignments = place_more(image, topic, asked.count)
        return add_partitions(image, asked.name, assignments)

    is_large = asked.count - len(topic.partitions) > AT_ONCE
    planned = await message_thread.compute(with_more) if is_large else with_more()
    directories.check_free_space()
    changes.take(asked.count - len(topic.partitions))
    return planned


def _result(shape: Shape, name: str, error: KafkaError | None) -> Any:
    return shape(
        name=name,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else str(error),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    one = shape.of("results")
    names = dict.fromkeys(asked.name for asked in message.topics)
    return shape(results=tuple(_result(one, name, error) for name in names))


API = Api(API_KEY, "CreatePartitions", range(4), error_response, is_for_controller=True)
