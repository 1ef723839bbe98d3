"""Whose signature counts (S46, S81)."""

import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from lamina.security.oauthbearer import TokenError, UnknownKey
from lamina.security.signing_keys import KeySetError, read_key_set, signed_claims
from tests.security.tokens import Issuer, key_set

FIRST, SECOND, ELLIPTIC = Issuer(), Issuer("second"), Issuer("elliptic", "ES256")
KEYS = read_key_set(key_set(FIRST, SECOND, ELLIPTIC))


@pytest.mark.parametrize("issuer", [FIRST, SECOND, ELLIPTIC])
def test_the_key_that_a_token_names_has_signed_it(issuer: Issuer) -> None:
    assert signed_claims(issuer.token(), KEYS)["sub"] == "alice"


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_an_rsa_key_signs_by_any_of_its_algorithms(algorithm: str) -> None:
    assert signed_claims(Issuer("first", algorithm, FIRST.key).token(), KEYS)["sub"] == "alice"


def test_a_key_may_have_one_algorithm_alone() -> None:
    keys = read_key_set(key_set(FIRST, alg="RS512"))
    assert signed_claims(Issuer("first", "RS512", FIRST.key).token(), keys)
    with pytest.raises(TokenError, match="signature is wrong, or by an algorithm"):
        signed_claims(FIRST.token(), keys)


@pytest.mark.parametrize("keys", [KEYS[:1], KEYS])
def test_a_token_need_not_name_its_key(keys: Any) -> None:
    assert signed_claims(jwt.encode({"sub": "alice"}, FIRST.key, "RS256"), keys)["sub"] == "alice"


def test_a_key_that_is_not_in_the_set_is_told_apart() -> None:
    with pytest.raises(UnknownKey):
        signed_claims(Issuer("third").token(), KEYS)


def test_a_foreign_key_under_a_known_name_signs_nothing() -> None:
    """S81, CVE-2026-33557"""
    with pytest.raises(TokenError, match="signature is wrong"):
        signed_claims(Issuer("first").token(), KEYS)
    with pytest.raises(TokenError, match="signature is wrong"):
        signed_claims(jwt.encode({"sub": "alice"}, Issuer("x").key, "RS256"), KEYS)


def test_a_token_without_a_signature_is_signed_by_nobody() -> None:
    for headers in ({}, {"kid": "first"}):
        with pytest.raises(TokenError):
            signed_claims(jwt.encode({"sub": "alice"}, "", "none", headers), KEYS)


def test_a_public_key_is_nobodys_secret() -> None:
    """S46: an HMAC with the public key as its secret, which everybody knows."""
    public = FIRST.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = b".".join(
        urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "first"}, {"sub": "alice"})
    )
    signature = urlsafe_b64encode(hmac.digest(public, signed, "sha256")).rstrip(b"=")
    with pytest.raises(TokenError):
        signed_claims((signed + b"." + signature).decode(), KEYS)


def test_a_token_that_was_changed_is_refused() -> None:
    header, _, signature = FIRST.token().split(".")
    other = Issuer("x").token(sub="admin").split(".")[1]
    with pytest.raises(TokenError):
        signed_claims(f"{header}.{other}.{signature}", KEYS)


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "x"},
        {**FIRST.jwk, "use": "enc"},
        {**FIRST.jwk, "kid": 5},
        {**FIRST.jwk, "alg": "HS256"},
        {**FIRST.jwk, "alg": "none"},
        {**FIRST.jwk, "n": "%"},
        {**ELLIPTIC.jwk, "crv": "secp256k1"},
        {**ELLIPTIC.jwk, "x": "AAAA"},
        {**ELLIPTIC.jwk, "crv": ["P-256"]},
        {**FIRST.jwk, "d": "AQAB"},
        Issuer("weak", key=rsa.generate_private_key(65537, 1024)).jwk,
        {},
        "text",
        None,
    ],
)
def test_keys_that_are_passed_over(entry: Any) -> None:
    assert [key.id for key in read_key_set(json.dumps({"keys": [entry, SECOND.jwk]}).encode())] == ["second"]
    with pytest.raises(KeySetError):
        read_key_set(json.dumps({"keys": [entry]}).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"keys": {}}', b'{"keys": []}', b'{"keys": 1}', b"[" * 100_000])
def test_what_is_no_key_set(data: bytes) -> None:
    with pytest.raises(KeySetError):
        read_key_set(data)


@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z0-9_-]{0,40}(\.[A-Za-z0-9_-]{0,40}){0,4}", fullmatch=True)))
def test_any_text_is_refused_in_words(token: str) -> None:
    with pytest.raises(TokenError):
        signed_claims(token, KEYS)


def test_a_token_that_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(TokenError, match="too large"):
        signed_claims("x" * 100_000, KEYS)
