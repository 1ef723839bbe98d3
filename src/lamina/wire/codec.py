"""Message bodies and whole frames, both directions.

Owns the two doors that the rest of the house uses: `parse_*` for bytes that somebody else wrote, and
`encode_*` for frames that are ready to be sent, size and header included. Must not know which APIs are
offered, nor what any message means.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any

from lamina.wire.encoder import encoder_around, encoder_of
from lamina.wire.fields import Entity
from lamina.wire.headers import parse_response_header, start_request, start_response
from lamina.wire.parser import parse_start, parse_whole, parser_of
from lamina.wire.primitives import MAX_ELEMENTS, UNREADABLE, Buffer, malformed
from lamina.wire.versions import request_schema, response_schema

_SIZE = Struct(">i")
_pack_size = _SIZE.pack_into
SIZE_BYTES = _SIZE.size


def parse_request(api_key: int, api_version: int, body: Buffer, most_elements: int = MAX_ELEMENTS) -> Any:
    """The request in these bytes, as an entity of its class. Raises `MalformedRequest`, or `UnknownMessage`.

    ``most_elements`` bounds its entries and tags. Nothing of it refers to `body` afterwards. What follows the last
    field is not looked at, as in Kafka: librdkafka asks for all topics with a list of four zero bytes where one is
    meant.
    """
    schema = request_schema(api_key, api_version)
    try:
        return parse_start(parser_of(schema), bytes(body), [most_elements])
    except UNREADABLE as error:
        raise malformed(f"{schema.__name__} v{api_version}", error) from None


def parse_response(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Any]:
    """(correlation id, the response) of a frame that another broker sent."""
    correlation_id, body_at = parse_response_header(api_key, api_version, frame)
    return correlation_id, parse_entity(response_schema(api_key, api_version), frame[body_at:])


def prepare(api_key: int, api_version: int) -> None:
    """Compile what a broker needs for this version, so that its first request does not wait for it."""
    parser_of(request_schema(api_key, api_version))
    encoder_of(response_schema(api_key, api_version))


def parse_entity(entity_type: type[Entity], data: Buffer) -> Any:
    """Any message or structure that takes exactly these bytes."""
    try:
        return parse_whole(parser_of(entity_type), bytes(data), [MAX_ELEMENTS])
    except UNREADABLE as error:
        raise malformed(f"{entity_type.__name__} v{entity_type.__version__}", error) from None


def encode_request(request: Entity, correlation_id: int, client_id: str | None) -> bytearray:
    """A frame to send to another broker."""
    out = start_request(request.__api_key__, request.__version__, correlation_id, client_id)
    encoder_of(type(request))(out, request)
    _pack_size(out, 0, len(out) - SIZE_BYTES)
    return out


def encode_response(response: Entity, correlation_id: int) -> bytearray:
    """A frame that answers the request with this correlation id.

    Durations and timestamps may be plain milliseconds and error codes plain numbers.
    """
    out = start_response(response.__api_key__, response.__version__, correlation_id)
    encoder_of(type(response))(out, response)
    _pack_size(out, 0, len(out) - SIZE_BYTES)
    return out


def encode_response_around(
    response: Entity, array: str, encoded: Sequence[bytes | bytearray], correlation_id: int
) -> bytearray:
    """A frame whose elements of one top-level array are encoded already, each by `encode_entity`.

    Whatever `response` holds in that array is not looked at. So a Metadata answer is put together from cached
    topics: `encode_response_around(MetadataResponse(topics=(), …), "topics", cached, correlation_id)`.
    """
    out = start_response(response.__api_key__, response.__version__, correlation_id)
    encoder_around(type(response), array)(out, response, encoded)
    _pack_size(out, 0, len(out) - SIZE_BYTES)
    return out


def encode_entity(entity: Entity) -> bytearray:
    """A message or a structure inside one, without header and size."""
    out = bytearray()
    encoder_of(type(entity))(out, entity)
    return out
