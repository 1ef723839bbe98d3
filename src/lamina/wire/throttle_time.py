"""How long a client is told to wait, in a response that is encoded already.

Owns where it stands: right behind the header, in every response that begins with it. Must not know what it is for.
"""

from struct import Struct

from lamina.wire.fields import fields_of
from lamina.wire.headers import response_header_bytes
from lamina.wire.versions import response_schema

_MS = Struct(">i")
_FIELD = "throttle_time"


def read_throttle_ms(api_key: int, api_version: int, frame: bytearray) -> int:
    """0 where the response does not begin with it."""
    at = _at(api_key, api_version)
    return 0 if at is None else int(_MS.unpack_from(frame, at)[0])


def write_throttle_ms(api_key: int, api_version: int, frame: bytearray, throttle_ms: int) -> None:
    at = _at(api_key, api_version)
    if at is not None:
        _MS.pack_into(frame, at, throttle_ms)


def _at(api_key: int, api_version: int) -> int | None:
    begins_with_it = fields_of(response_schema(api_key, api_version))[0].name == _FIELD
    return response_header_bytes(api_key, api_version) if begins_with_it else None
