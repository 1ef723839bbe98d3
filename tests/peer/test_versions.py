"""Which version a call is sent in."""

import pytest

from lamina.errors import UnsupportedVersion
from lamina.peer.call import MessageCall
from lamina.peer.versions import ApiVersionsCall, OfferedVersions, next_attempt
from lamina.wire.codec import SIZE_BYTES, parse_response
from lamina.wire.primitives import MalformedRequest
from tests.peer.responses import response_frame

API_VERSIONS, METADATA = 18, 3
UNSUPPORTED_VERSION = 35


def offered(low: int, high: int) -> OfferedVersions:
    frame = response_frame(
        API_VERSIONS, 0, 1, api_keys=[{"api_key": METADATA, "min_version": low, "max_version": high}]
    )
    return OfferedVersions(parse_response(API_VERSIONS, 0, frame[SIZE_BYTES:])[1].api_keys)


@pytest.mark.parametrize(
    ("low", "high", "version"), [(0, 20, 12), (0, 10, 10), (12, 20, 12), (4, 4, 4)], ids=lambda value: str(value)
)
def test_the_newest_version_that_both_know_is_taken(low: int, high: int, version: int) -> None:
    assert offered(low, high).version_for(MessageCall(METADATA, range(4, 13))) == version


@pytest.mark.parametrize(("low", "high"), [(0, 3), (13, 20)])
def test_no_version_in_common_is_one_sentence(low: int, high: int) -> None:
    with pytest.raises(
        UnsupportedVersion, match=rf"needed in version 4-12; the broker offers its versions {low}-{high}"
    ):
        offered(low, high).version_for(MessageCall(METADATA, range(4, 13)))


def test_an_api_that_is_not_offered_is_one_sentence() -> None:
    with pytest.raises(UnsupportedVersion, match="API key 47 is needed in version 0; the broker does not offer it"):
        offered(0, 3).version_for(MessageCall(47, range(1)))


def test_a_refusal_in_version_0_is_read_whatever_was_asked() -> None:
    call = ApiVersionsCall()
    ranges = [{"api_key": API_VERSIONS, "min_version": 0, "max_version": 2}]
    frame = response_frame(API_VERSIONS, 0, 1, error_code=UNSUPPORTED_VERSION, api_keys=ranges)
    refusal = call.decode(call.versions[-1], memoryview(frame)[SIZE_BYTES:])
    assert refusal.error_code == UNSUPPORTED_VERSION
    assert next_attempt(refusal).versions == range(2, 3)


def test_a_refusal_that_names_nothing_is_followed_by_version_0() -> None:
    frame = response_frame(API_VERSIONS, 0, 1, error_code=UNSUPPORTED_VERSION)
    refusal = ApiVersionsCall().decode(4, memoryview(frame)[SIZE_BYTES:])
    assert next_attempt(refusal).versions == range(1)


@pytest.mark.parametrize("size", range(6))
def test_a_response_without_an_error_code_is_malformed(size: int) -> None:
    with pytest.raises(MalformedRequest):
        ApiVersionsCall().decode(4, memoryview(bytes(size)))
