"""PLAIN as Kafka checks it (S38, S80, S83)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.security.plain import PlainError, PlainServer

USERS = {"alice": "secret", "bob": "päss wörd"}


@pytest.mark.parametrize(
    ("message", "user"),
    [(b"\0alice\0secret", "alice"), (b"alice\0alice\0secret", "alice"), ("\0bob\0päss wörd".encode(), "bob")],
)
def test_who_knows_the_password_is_let_in(message: bytes, user: str) -> None:
    server = PlainServer(USERS)
    assert server.respond(message) == b""
    assert server.is_complete
    assert server.user == user
    assert server.expires_at_ms is None


@pytest.mark.parametrize("message", [b"\0alice\0wrong", b"\0nobody\0secret", b"\0Alice\0secret", b"\0alice\0secre\xff"])
def test_unknown_users_and_wrong_passwords_are_told_the_same(message: bytes) -> None:
    server = PlainServer(USERS)
    with pytest.raises(PlainError) as refused:
        server.respond(message)
    assert refused.value.told == str(refused.value) == "Authentication failed: Invalid username or password"
    assert not server.is_complete


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "three parts"),
        (b"alice\0secret", "three parts"),
        (b"\0alice\0secret\0", "three parts"),
        (b"\0" * 100, "three parts"),
        (b"\0\0secret", "name is empty"),
        (b"\0alice\0", "password is empty"),
        (b"bob\0alice\0secret", "as another"),
    ],
)
def test_each_mistake_has_its_own_text(message: bytes, why: str) -> None:
    with pytest.raises(PlainError, match=why):
        PlainServer(USERS).respond(message)


def test_a_login_has_one_message() -> None:
    server = PlainServer(USERS)
    with pytest.raises(PlainError):
        server.respond(b"\0alice\0wrong")
    with pytest.raises(PlainError, match="over"):
        server.respond(b"\0alice\0secret")


@given(st.binary())
def test_any_bytes_are_refused_in_words(message: bytes) -> None:
    with pytest.raises(PlainError, match="Authentication failed"):
        PlainServer(USERS).respond(message)
