"""What is written by hand is what the schema says."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.api_keys import FETCH
from lamina.wire.codec import SIZE_BYTES, encode_request
from lamina.wire.fetch_request import VERSIONS, parse_fetch_request
from lamina.wire.fetch_request_frame import FIRST_BY_HAND, encode_fetch_request
from lamina.wire.fields import fields_of
from lamina.wire.headers import parse_request_header
from lamina.wire.versions import request_schema
from tests.examples import examples
from tests.wire.messages import random_entity

BY_HAND = range(FIRST_BY_HAND, VERSIONS.stop)


def as_a_follower_says_it(entity: Any) -> Any:
    """Without the tagged fields that only Kafka's brokers fill."""
    said: dict[str, Any] = {}
    for field in fields_of(type(entity)):
        value = getattr(entity, field.name)
        if field.tag is not None and field.name != "replica_state":
            value = field.default
        elif field.name == "rack_id" and value is None:
            value = ""
        elif field.entity is not None and field.is_array:
            value = tuple(as_a_follower_says_it(one) for one in value)
        said[field.name] = value
    return type(entity)(**said)


@settings(max_examples=examples(400), deadline=None)
@given(version=st.sampled_from(BY_HAND), seed=st.integers(0, 2**32), client_id=st.sampled_from([None, "", "broker-ü"]))
def test_a_request_written_by_hand_has_the_bytes_of_its_schema(version: int, seed: int, client_id: str | None) -> None:
    expected = as_a_follower_says_it(random_entity(request_schema(FETCH, version), Random(seed)))
    frame = bytes(encode_request(expected, seed % 100, client_id))
    body_at = SIZE_BYTES + parse_request_header(frame[SIZE_BYTES:]).body_at
    request = parse_fetch_request(version, frame[body_at:])
    assert bytes(encode_fetch_request(request, version, seed % 100, client_id)) == frame
