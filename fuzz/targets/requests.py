"""The body of every request in every version that the broker offers: what is read is written and read again alike."""

from fuzz.choices import Choices
from lamina.broker.requests.api_table import APIS
from lamina.wire.codec import encode_entity, parse_request
from lamina.wire.primitives import MalformedRequest

OFFERED = tuple((api.key, version) for api in APIS for version in api.versions)


def one(data: bytes) -> None:
    choices = Choices(data)
    api_key, api_version = choices.one_of(OFFERED)
    try:
        request = parse_request(api_key, api_version, choices.rest())
    except MalformedRequest:
        return
    written = encode_entity(request)
    # Bytes are compared, not messages: a number may be NaN.
    assert encode_entity(parse_request(api_key, api_version, written)) == written
