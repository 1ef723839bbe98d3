"""Fetch responses as they are read by hand, beside the reader that is made from the schema."""

from datetime import timedelta
from typing import Any

from fuzz.choices import Choices
from lamina.wire.api_keys import FETCH
from lamina.wire.codec import parse_response
from lamina.wire.fetch_request import FIRST_WITH_SESSIONS, VERSIONS
from lamina.wire.fetched import FetchResponse, parse_fetch_response
from lamina.wire.primitives import MalformedRequest


def one(data: bytes) -> None:
    choices = Choices(data)
    version = choices.one_of(VERSIONS)
    frame = choices.rest()
    try:
        by_hand = parse_fetch_response(version, frame)
    except MalformedRequest:
        by_hand = None
    try:
        by_schema = parse_response(FETCH, version, frame)
    except MalformedRequest:
        # By hand more is taken: tags that are of no use here are not read.
        return
    assert by_hand is not None
    assert by_hand[0] == by_schema[0]
    assert _facts(by_hand[1], version) == _facts_by_schema(by_schema[1], version)


def _facts(response: FetchResponse, version: int) -> Any:
    return (
        response.throttle_time_ms,
        (response.error_code, response.session_id) if version >= FIRST_WITH_SESSIONS else None,
        [
            (
                topic.name,
                topic.topic_id,
                [
                    (one.partition_index, one.error_code, one.high_watermark, one.last_stable_offset, one.records)
                    for one in topic.partitions
                ],
            )
            for topic in response.topics
        ],
        [tuple(endpoint) for endpoint in response.node_endpoints],
    )


def _facts_by_schema(response: Any, version: int) -> Any:
    return (
        response.throttle_time / timedelta(milliseconds=1),
        (response.error_code, response.session_id) if version >= FIRST_WITH_SESSIONS else None,
        [
            (
                getattr(topic, "topic", None),
                getattr(topic, "topic_id", None),
                [
                    (one.partition_index, one.error_code, one.high_watermark, one.last_stable_offset, one.records)
                    for one in topic.partitions
                ],
            )
            for topic in response.responses
        ],
        [(one.node_id, one.host, one.port, one.rack) for one in getattr(response, "node_endpoints", ())],
    )
