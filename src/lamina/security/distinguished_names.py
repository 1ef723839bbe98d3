"""The name in a certificate, written as Java writes it (RFC 2253), because Kafka's principals and access rules do.

Owns the reading of the name's DER and the spelling (S18): the last part first, no spaces between them; a part
whose type has no short name is told by number, with its value as hexadecimal DER. Must not know the rest of a
certificate.
"""

from collections.abc import Iterator
from typing import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_SEQUENCE, _SET, _OID = 0x30, 0x31, 0x06
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED = frozenset(',=+<>#;"\\')
_EDGES = " \r"


class MalformedName(ValueError):
    """Bytes that are no distinguished name."""


class _Element(NamedTuple):
    tag: int
    content: bytes
    encoded: bytes


def distinguished_name(der: bytes) -> str:
    """The DER of a certificate's subject as text; raises :class:`MalformedName`."""
    found = list(_elements(der))
    if len(found) != 1 or found[0].tag != _SEQUENCE:
        raise MalformedName("a name must be one sequence")
    return ",".join(_relative_name(part) for part in reversed(list(_elements(found[0].content))))


def _relative_name(part: _Element) -> str:
    if part.tag != _SET or not part.content:
        raise MalformedName("a part of a name must be a set")
    return "+".join(_attribute(one) for one in _elements(part.content))


def _attribute(one: _Element) -> str:
    elements = list(_elements(one.content))
    if one.tag != _SEQUENCE or len(elements) != 2 or elements[0].tag != _OID:
        raise MalformedName("an attribute must be a type and a value")
    kind, value = elements
    number = _object_identifier(kind.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join("\\00" if char == "\0" else f"\\{char}" if char in _ESCAPED else char for char in text)
    lead = len(escaped) - len(escaped.lstrip(_EDGES))
    trail = max(len(escaped.rstrip(_EDGES)), lead)
    return "".join(f"\\{char}" if not lead <= at < trail else char for at, char in enumerate(escaped))


def _elements(der: bytes) -> Iterator[_Element]:
    position = 0
    while position < len(der):
        begin = position
        if len(der) - position < 2:
            raise MalformedName("an element is cut short")
        tag, length = der[position], der[position + 1]
        position += 2
        if length >= 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or len(der) - position < size:
                raise MalformedName("an element's length cannot be read")
            length = int.from_bytes(der[position : position + size], "big")
            position += size
        if len(der) - position < length:
            raise MalformedName("an element is cut short")
        position += length
        yield _Element(tag, der[position - length : position], der[begin:position])


def _object_identifier(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] & 0x80:
        raise MalformedName("an attribute's type cannot be read")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
