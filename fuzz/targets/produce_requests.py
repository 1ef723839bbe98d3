"""Produce requests as they are read by hand, beside the reader that is made from the schema."""

from typing import Any
from uuid import UUID

from fuzz.choices import Choices
from lamina.wire.api_keys import PRODUCE
from lamina.wire.codec import parse_entity
from lamina.wire.primitives import MalformedRequest
from lamina.wire.produce import VERSIONS, parse_produce_request
from lamina.wire.versions import request_schema


def one(data: bytes) -> None:
    choices = Choices(data)
    version = choices.one_of(VERSIONS)
    body = choices.rest()
    try:
        by_schema = parse_entity(request_schema(PRODUCE, version), body)
    except MalformedRequest:
        by_schema = None
    try:
        by_hand = parse_produce_request(version, body)
    except MalformedRequest:
        assert by_schema is None
        return
    assert by_schema is not None
    assert by_hand.transactional_id == by_schema.transactional_id
    assert by_hand.acks == by_schema.acks
    found = [
        (*_named(topic), [(each.partition_index, each.records and bytes(each.records)) for each in topic.partitions])
        for topic in by_hand.topics
    ]
    assert found == [
        (*_named(topic), [(each.index, each.records and bytes(each.records)) for each in topic.partition_data])
        for topic in by_schema.topic_data
    ]


def _named(topic: Any) -> tuple[str | None, UUID | None]:
    """By name or by id, as the version has it."""
    return getattr(topic, "name", None), getattr(topic, "topic_id", None)
