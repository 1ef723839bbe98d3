"""Which claims make a token somebody's (S46), and tokens without a signature (S45)."""

import json
from base64 import urlsafe_b64encode
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.security.oauthbearer import TokenError
from lamina.security.token_claims import TokenRules, check_claims, read_claims, unsecured_claims
from tests.security.tokens import NOW, NOW_MS

CLAIMS: dict[str, Any] = {"sub": "alice", "iat": NOW, "exp": NOW + 60}
STRICT = TokenRules(audiences=("kafka", "lamina"), issuer="https://issuer", required_scopes=frozenset({"write"}))
ALL = {**CLAIMS, "aud": "kafka", "iss": "https://issuer", "scope": "read write"}


def test_a_token_is_its_subjects_until_it_expires() -> None:
    assert check_claims(CLAIMS, TokenRules(), NOW_MS) == ("alice", NOW_MS + 60_000)


def test_another_claim_may_name_the_user() -> None:
    rules = TokenRules(user_claim="email", scope_claim="scp", required_scopes=frozenset({"a"}))
    assert check_claims({**CLAIMS, "email": "a@b", "scp": ["a", "b"]}, rules, NOW_MS).user == "a@b"


@pytest.mark.parametrize(
    "more",
    [
        {"exp": NOW - 29},
        {"exp": NOW + 0.5},
        {"nbf": NOW + 30},
        {"iat": NOW + 1000},
        {"scope": None},
        {"aud": ["lamina", "x"]},
        {"exp": 10**400},
    ],
)
def test_claims_that_pass(more: dict[str, Any]) -> None:
    assert check_claims({**CLAIMS, **more}, TokenRules(), NOW_MS).user == "alice"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"sub": None}, "names nobody"),
        ({"sub": " "}, "names nobody"),
        ({"sub": "a\ud800"}, "names nobody"),
        ({"sub": 5}, "names nobody"),
        ({"exp": None}, "when it expires"),
        ({"exp": NOW - 30}, "has expired"),
        ({"exp": "tomorrow"}, "is no time"),
        ({"exp": True}, "is no time"),
        ({"exp": float("inf")}, "is no time"),
        ({"exp": float("nan")}, "is no time"),
        ({"iat": None}, "when it was issued"),
        ({"iat": -1}, "is no time"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"iss": "https://other"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": "kafka lamina"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": {"kafka": 1}}, "neither a text"),
        ({"scope": "read"}, "required scope"),
        ({"scope": [1]}, "neither a text"),
    ],
)
def test_claims_that_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(TokenError, match=why):
        check_claims({**ALL, **more}, STRICT, NOW_MS)
    assert check_claims(ALL, STRICT, NOW_MS)


def unsecured(header: dict[str, Any], claims: Any, signature: str = "") -> str:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)]
    return ".".join((*parts, signature))


def test_a_token_without_a_signature_is_read() -> None:
    assert unsecured_claims(unsecured({"alg": "none"}, CLAIMS)) == CLAIMS


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "....",
        "%.%.",
        unsecured({"alg": "HS256"}, CLAIMS),
        unsecured({}, CLAIMS),
        unsecured({"alg": "none"}, CLAIMS, "c2ln"),
        unsecured({"alg": "none"}, [CLAIMS]),
        "x" * 100_000 + "..",
    ],
)
def test_what_is_no_token_without_a_signature(token: str) -> None:
    with pytest.raises(TokenError):
        unsecured_claims(token)


@given(st.binary())
def test_any_bytes_are_claims_or_refused(payload: bytes) -> None:
    with suppress(TokenError):
        assert isinstance(read_claims(payload), dict)


def test_claims_nested_without_end_are_refused() -> None:
    with pytest.raises(TokenError):
        read_claims(b"[" * 100_000)
