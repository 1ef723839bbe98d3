"""DeleteTopics (key 20), versions 1-6.

Behaviour: topics that are there are taken out of service and forgotten in one change, before the answer; their
files go later. An unknown name is UNKNOWN_TOPIC_OR_PARTITION, an unknown id UNKNOWN_TOPIC_ID. A topic that is
named twice, by name or id, stays and gets INVALID_REQUEST. Nothing is deleted with `delete.topic.enable=false`. A
client above its quota of changes gets THROTTLING_QUOTA_EXCEEDED for each topic (S64). Whether the client may delete
a topic that it names by its id is decided inside the change, by the name that the topic has there.
Version notes: by name or id, not both, in v6; messages from v5; below v3 there is no code for disabled deletion,
and INVALID_REQUEST stands for it; below v5 what exceeds a quota is done all the same, and the client told to wait.
Not done: the timeout is not looked at.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.topics import Kept, why_kept
from lamina.broker.requests.client_quotas import ClientQuotas, TopicChanges
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns, in_turns
from lamina.clocks import Clocks
from lamina.controller.deletion import finish_deletions
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, ThrottlingQuotaExceeded, TopicDeletionDisabled
from lamina.image.changes import mark_deleted
from lamina.image.image import Image
from lamina.image.topic import Topic
from lamina.settings.broker import DELETE_TOPIC_ENABLE
from lamina.wire.api_keys import DELETE_TOPICS as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_WITH_DISABLED = 3
_FIRST_STRICT = 5
_TOPICS_AT_A_TIME = 250


class Asked(NamedTuple):
    name: str | None
    topic_id: UUID | None


_Outcome = Topic | KafkaError | Kept
_KeptBy = Callable[[str], Kept | None]


async def handle(
    metadata: Metadata,
    client_quotas: ClientQuotas,
    clocks: Clocks,
    authorizer: Authorizer | None,
    request: Request,
    message: Any,
) -> Any:
    if not metadata.settings[DELETE_TOPIC_ENABLE]:
        disabled = TopicDeletionDisabled if request.api_version >= _FIRST_WITH_DISABLED else InvalidRequest
        raise disabled("delete.topic.enable is false")
    every = _asked(message)
    changes = client_quotas.changes(request, is_strict=request.api_version >= _FIRST_STRICT)
    outcomes: list[_Outcome] = []

    def kept(topic: str) -> Kept | None:
        return None if authorizer is None else why_kept(authorizer, request, topic)

    async def change(image: Image) -> Image:
        turns = Turns(clocks)
        outcomes[:] = [_within(changes, outcome) for outcome in await _find_all(image, every, kept, turns)]
        names = [outcome.name for outcome in outcomes if isinstance(outcome, Topic)]
        for start in range(0, len(names), _TOPICS_AT_A_TIME):
            image = mark_deleted(image, *names[start : start + _TOPICS_AT_A_TIME])
            await turns.step()
        # Nobody waits for brokers that are away.
        return finish_deletions(image)

    await metadata.change(change)
    shape = response_shape(API_KEY, request.api_version)
    both = zip(every, outcomes, strict=True)
    one = shape.of("responses")
    responses = [_response(one, asked, outcome) async for asked, outcome in in_turns(both, clocks)]
    return shape(responses=tuple(responses))


def _within(changes: TopicChanges, outcome: _Outcome) -> _Outcome:
    """The topic only if the client's quota lets it go."""
    try:
        if isinstance(outcome, Topic):
            changes.take(len(outcome.partitions))
        return outcome
    except ThrottlingQuotaExceeded as error:
        return error.without_frames()


def _asked(message: Any) -> list[Asked]:
    if hasattr(message, "topic_names"):
        return [Asked(name, None) for name in message.topic_names]
    return [Asked(topic.name, topic.topic_id) for topic in message.topics]


async def _find_all(image: Image, every: list[Asked], kept: _KeptBy, turns: Turns) -> list[_Outcome]:
    found = []
    for asked in every:
        found.append(_find(image, asked, kept))
        await turns.step()
    named = Counter(topic.name for topic in found if isinstance(topic, Topic))
    return [
        InvalidRequest(f"topic {topic.name!r} is named more than once")
        if isinstance(topic, Topic) and named[topic.name] > 1
        else topic
        for topic in found
    ]


def _find(image: Image, asked: Asked, kept: _KeptBy) -> _Outcome:
    try:
        if asked.topic_id is None:
            if asked.name is None:
                raise InvalidRequest("a topic with neither a name nor an id")
            return image.topic(asked.name)
        if asked.name is not None:
            raise InvalidRequest("a topic is named by its name or by its id, not by both")
        topic = image.topic_with_id(asked.topic_id.bytes)
    except KafkaError as error:
        return error.without_frames()
    return kept(topic.name) or topic


def _response(shape: Shape, asked: Asked, outcome: _Outcome) -> Any:
    if isinstance(outcome, Kept):
        asked, outcome = asked._replace(name=outcome.name), outcome.error
    if isinstance(outcome, KafkaError):
        return shape(name=asked.name, topic_id=asked.topic_id, error_code=outcome.code, error_message=str(outcome))
    return shape(name=outcome.name, topic_id=UUID(bytes=outcome.id), error_code=ErrorCode.NONE, error_message=None)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    responses = tuple(_response(shape.of("responses"), asked, error) for asked in _asked(message))
    return shape(responses=responses)


API = Api(API_KEY, "DeleteTopics", range(1, 7), error_response, is_for_controller=True)
