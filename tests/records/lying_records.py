"""Strategies for the bytes behind a batch's header, with a count of records: most are well-formed, any may lie."""

from hypothesis import strategies as st

from lamina.records.batch import HEADER_BYTES
from lamina.records.record import build_batch
from tests.records.strategies import records

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

int64s = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([INT64_MIN, -1, 0, INT64_MAX])


def number(value: int, least_bytes: int = 1, excess: int = 0) -> bytes:
    """A varint in more bytes than it needs, or with bits beyond its width."""
    zigzag = ((value << 1) ^ (value >> 63)) + excess
    out = bytearray()
    while zigzag > 0x7F or len(out) < least_bytes - 1:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


@st.composite
def odd_number(draw: st.DrawFn, value: int, width: int = 32) -> bytes:
    """Mostly the number as it should be; now and then long, too long, too wide, or another."""
    match draw(st.integers(0, 40)):
        case 0:
            return number(value, draw(st.integers(2, 11)))
        case 1:
            return number(value, excess=1 << width)
        case 2:
            return number(draw(int64s))
        case 3:
            return number(value + draw(st.integers(-2, 2)))
    return number(value)


@st.composite
def field(draw: st.DrawFn) -> bytes:
    """A length and that many bytes; now and then null, or less than null."""
    data = draw(st.binary(max_size=5))
    length = draw(st.sampled_from([len(data)] * 8 + [-1, -1, -2]))
    return draw(odd_number(length)) + (data if length >= 0 else b"")


@st.composite
def forged(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records written field by field, most of them right, any of them wrong; lengths fit what was written."""
    out = bytearray()
    count = draw(st.integers(1, 4))
    for index in range(count):
        headers = draw(st.lists(field(), max_size=2))
        header_count = len(headers) if headers else draw(st.sampled_from([0] * 8 + [-1]))
        body = b"\0" + draw(odd_number(draw(st.integers(-5, 5)), 64)) + draw(odd_number(index))
        body += draw(field()) + draw(field()) + draw(odd_number(header_count))
        body += b"".join(key + draw(field()) for key in headers)
        out += draw(odd_number(len(body))) + body
    return bytes(out), count


@st.composite
def changed(draw: st.DrawFn) -> tuple[bytes, int]:
    """A client's records with bytes put in or cut out, or with another count."""
    found = draw(records(first_offset=0, most=6))
    data = bytes(build_batch(found)[HEADER_BYTES:])
    at = draw(st.integers(0, len(data)))
    data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 5)) :]
    return data, len(found) + draw(st.integers(-1, 1))


_noise = st.tuples(st.binary(max_size=80), st.sampled_from([0, 1, 2, 2**31 - 1]))
payloads = forged() | forged() | changed() | _noise
