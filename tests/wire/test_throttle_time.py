"""How long a client is told to wait is found in an encoded response, and put there."""

import pytest

from lamina.broker.requests.api import Api
from lamina.broker.requests.api_table import APIS
from lamina.wire.codec import SIZE_BYTES, encode_response, parse_response
from lamina.wire.fields import fields_of
from lamina.wire.throttle_time import read_throttle_ms, write_throttle_ms
from lamina.wire.versions import response_schema
from tests.broker.in_process import build

FORWARDED = [(api, version) for api in APIS if api.is_for_controller for version in api.versions]


@pytest.mark.parametrize(("api", "version"), FORWARDED, ids=lambda one: getattr(one, "name", one))
def test_it_is_read_and_written_in_every_response_of_the_controller(api: Api, version: int) -> None:
    schema = response_schema(api.key, version)
    assert fields_of(schema)[0].name == "throttle_time"
    frame = encode_response(build(schema, {"throttle_time": 1234}), 7)
    assert read_throttle_ms(api.key, version, frame) == 1234
    write_throttle_ms(api.key, version, frame, 56789)
    correlation_id, response = parse_response(api.key, version, frame[SIZE_BYTES:])
    assert (correlation_id, response.throttle_time.total_seconds()) == (7, 56.789)


def test_a_response_that_does_not_begin_with_it_has_none() -> None:
    produce = 0
    frame = encode_response(build(response_schema(produce, 9), {"throttle_time": 1234}), 7)
    before = bytes(frame)
    assert read_throttle_ms(produce, 9, frame) == 0
    write_throttle_ms(produce, 9, frame, 5)
    assert frame == before
