"""The principal of a forwarded request, byte by byte as Kafka's DefaultPrincipalBuilder writes it (S49)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.wire.primitives import MalformedRequest
from lamina.wire.principal_data import decode_principal, encode_principal

ALICE = b"\x00\x00\x05User\x06alice\x00\x00"


def test_the_bytes_are_kafkas() -> None:
    """Version 0, two compact strings, a flag, no tagged fields."""
    assert encode_principal("User:alice") == ALICE
    assert decode_principal(ALICE) == "User:alice"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_any_name_comes_back(name: str) -> None:
    assert decode_principal(encode_principal(f"User:{name}")) == f"User:{name}"


def test_brokers_of_the_version_before_tell_it_as_text() -> None:
    assert decode_principal(b"User:ANONYMOUS") == "User:ANONYMOUS"


def test_a_principal_with_tagged_fields_of_a_later_kafka_is_read() -> None:
    assert decode_principal(ALICE[:-1] + b"\x01\x07\x02hi") == "User:alice"


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x01" + ALICE[2:], *(ALICE[:end] for end in range(2, len(ALICE)))]
)
def test_what_is_no_principal_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_principal(data)


@pytest.mark.parametrize("data", [ALICE + b"\x00", b"\x00\x00\x00\x06alice\x00\x00", b"\x00\x00\x01\x06alice\x00\x00"])
def test_more_or_less_than_a_principal_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_principal(data)
