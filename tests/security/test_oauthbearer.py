"""OAUTHBEARER's messages (S45, S80)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.security.oauthbearer import BearerToken, OAuthBearerError, OAuthBearerServer, TokenError
from lamina.security.sasl import SaslError

TOLD = '{"status": "invalid_token"}'


def server() -> OAuthBearerServer:
    def validate(token: str) -> BearerToken:
        if token != "good.token-_":
            raise TokenError("a reason for the log")
        return BearerToken("al=ice,", 1234)

    return OAuthBearerServer(validate)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good.token-_\x01\x01",
        b"n,,\x01auth=bearer  good.token-_\x01\x01",
        b"n,,\x01host=broker\x01auth=Bearer good.token-_\x01traceId=1 2\x01\x01",
        b"n,a=al=3Dice=2C,\x01auth=Bearer good.token-_\x01\x01",
    ],
)
def test_a_valid_token_lets_in_with_an_empty_answer(message: bytes) -> None:
    answering = server()
    assert answering.respond(message) == b""
    assert answering.is_complete
    assert (answering.user, answering.expires_at_ms) == ("al=ice,", 1234)


def test_a_refused_token_is_told_twice() -> None:
    answering = server()
    assert answering.respond(b"n,,\x01auth=Bearer bad\x01\x01") == TOLD.encode()
    assert not answering.is_complete
    with pytest.raises(OAuthBearerError, match="a reason for the log") as refused:
        answering.respond(b"\x01")
    assert refused.value.told == TOLD


def test_nobody_logs_in_as_somebody_else() -> None:
    """S80, CVE-2017-12610"""
    with pytest.raises(OAuthBearerError, match="as another") as refused:
        server().respond(b"n,a=admin,\x01auth=Bearer good.token-_\x01\x01")
    assert refused.value.told == str(refused.value)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"y,,\x01auth=Bearer good.token-_\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer good.token-_\x01\x01",
        b"n,,\x01auth=Bearer good.token-_\x01",
        b"n,,\x01auth=Basic good.token-_\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer good.token-_\x01auth=Bearer good.token-_\x01\x01",
        b"n,,\x01auth=Bearer good.token-_\x01=x\x01\x01",
        b"n,a=,\x01auth=Bearer good.token-_\x01\x01",
        b"n,,\x01auth=Bearer good.token-_\xff\x01\x01",
    ],
)
def test_messages_that_are_refused(message: bytes) -> None:
    answering = server()
    with pytest.raises(OAuthBearerError):
        answering.respond(message)
    with pytest.raises(OAuthBearerError, match="over"):
        answering.respond(b"n,,\x01auth=Bearer good.token-_\x01\x01")


def with_pairs(count: int) -> bytes:
    return b"n,,\x01auth=Bearer good.token-_\x01" + b"a=\x01" * count + b"\x01"


def test_extensions_that_no_client_needs_are_refused_before_they_are_read() -> None:
    assert server().respond(with_pairs(50)) == b""
    with pytest.raises(OAuthBearerError, match="too many extensions"):
        server().respond(with_pairs(174_000))


@given(st.binary())
def test_any_bytes_are_refused_in_words(message: bytes) -> None:
    with pytest.raises(SaslError):
        server().respond(message)
