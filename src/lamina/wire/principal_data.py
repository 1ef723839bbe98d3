"""Who a forwarded request is from, as Kafka's brokers tell each other: DefaultPrincipalData (KIP-590, S49).

Owns its bytes: a version, then the principal's type and name and whether it came by a delegation token. Must not know
requests.
"""

from struct import Struct
from typing import Final

from lamina.wire.primitives import (
    MalformedRequest,
    malformed,
    read_compact_string,
    skip_tags,
    write_compact_string,
    write_uvarint,
)

_VERSION: Final = Struct(">h")
_NEWEST: Final = 0
_MOST_TAGS: Final = 16
_BEFORE: Final = b"User:"
"""How the principal began while brokers told it as text; no version does."""


def encode_principal(principal: str) -> bytes:
    """Of ``Type:name``."""
    kind, _, name = principal.partition(":")
    out = bytearray(_VERSION.pack(_NEWEST))
    write_compact_string(out, kind)
    write_compact_string(out, name)
    out.append(False)
    write_uvarint(out, 0)
    return bytes(out)


def decode_principal(data: bytes) -> str:
    """``Type:name``. Raises :class:`MalformedRequest`."""
    if data.startswith(_BEFORE):
        return data.decode(errors="replace")
    if len(data) < _VERSION.size or _VERSION.unpack_from(data)[0] != _NEWEST:
        raise MalformedRequest("the principal of a forwarded request has a form that is not known.")
    try:
        kind, at = read_compact_string(data, _VERSION.size)
        name, at = read_compact_string(data, at)
        end = skip_tags(data, at + 1, [_MOST_TAGS])
    except (IndexError, UnicodeDecodeError) as error:
        raise malformed("the principal of a forwarded request", error) from None
    if not kind or name is None or end != len(data):
        raise MalformedRequest("the principal of a forwarded request has no type or no name, or more than these.")
    return f"{kind}:{name}"
