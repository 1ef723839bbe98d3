"""Fetch requests as they are read by hand, beside the reader that is made from the schema."""

from typing import Any

from fuzz.choices import Choices
from lamina.wire.api_keys import FETCH
from lamina.wire.codec import parse_entity
from lamina.wire.fetch_request import FIRST_WITH_SESSIONS, VERSIONS, FetchRequest, parse_fetch_request
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import request_schema


def one(data: bytes) -> None:
    choices = Choices(data)
    version = choices.one_of(VERSIONS)
    body = choices.rest()
    try:
        by_hand = parse_fetch_request(version, body)
    except MalformedRequest:
        by_hand = None
    try:
        by_schema = parse_entity(request_schema(FETCH, version), body)
    except MalformedRequest:
        # By hand more is taken: tags that are of no use here are not read, and a rack may be null.
        return
    assert by_hand is not None
    assert _facts(by_hand, version) == _facts_by_schema(by_schema, version)


def _facts(request: FetchRequest, version: int) -> Any:
    session = (request.session_id, request.session_epoch) if version >= FIRST_WITH_SESSIONS else None
    return (
        (request.min_bytes, request.max_bytes, request.isolation_level, session),
        [
            (topic.name, topic.topic_id, [(each.partition_index, each.fetch_offset) for each in topic.partitions])
            for topic in request.topics
        ],
        [tuple(topic) for topic in request.forgotten_topics],
    )


def _facts_by_schema(request: Any, version: int) -> Any:
    has_session = version >= FIRST_WITH_SESSIONS
    return (
        (
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
            (request.session_id, request.session_epoch) if has_session else None,
        ),
        [
            (*_topic(topic), [(each.partition, each.fetch_offset) for each in topic.partitions])
            for topic in request.topics
        ],
        [(*_topic(topic), topic.partitions) for topic in (request.forgotten_topics_data if has_session else ())],
    )


def _topic(topic: Any) -> tuple[Any, Any]:
    return getattr(topic, "topic", None), getattr(topic, "topic_id", None)
