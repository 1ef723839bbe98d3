import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import CorruptMessage
from lamina.records.varint import append_varint, read_varint, read_varlong


def encode(value: int) -> bytes:
    out = bytearray()
    append_varint(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (2**31 - 1, "feffffff0f")],
)
def test_small_magnitudes_take_few_bytes(value: int, encoded: str) -> None:
    assert encode(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_every_32_bit_number_comes_back(value: int, before: bytes, after: bytes) -> None:
    data = before + encode(value) + after
    assert read_varint(data, len(before)) == (value, len(data) - len(after))


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_64_bit_number_comes_back(value: int) -> None:
    data = encode(value)
    assert read_varlong(memoryview(data), 0) == (value, len(data))


def test_a_padded_number_is_read_as_java_reads_it() -> None:
    assert read_varint(b"\x82\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff", b"\x80" * 5 + b"\x00", b"\xff" * 4 + b"\x10"])
def test_a_number_cut_off_or_wider_than_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptMessage):
        read_varint(data, 0)


@pytest.mark.parametrize("data", [b"", b"\xff" * 9, b"\x80" * 10 + b"\x00", b"\xff" * 9 + b"\x02"])
def test_a_number_cut_off_or_wider_than_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptMessage):
        read_varlong(data, 0)
