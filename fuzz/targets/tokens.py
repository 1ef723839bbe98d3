"""Tokens of OAUTHBEARER: whatever they are, whoever has no key signs none, and what has expired lets nobody in."""

import json
from contextlib import suppress
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from fuzz.choices import Choices
from lamina.security.oauthbearer import BearerToken, OAuthBearerServer, TokenError
from lamina.security.sasl import SaslError
from lamina.security.signing_keys import KeySetError, SigningKey, read_key_set, signed_claims
from lamina.security.token_claims import TokenRules, check_claims, read_claims, unsecured_claims

_NOW_MS = 1_700_000_000_000
_SEED = bytes(range(32))
RULES = TokenRules(audiences=("kafka",), issuer="issuer", required_scopes=frozenset({"write"}))


@cache
def issuer() -> Ed25519PrivateKey:
    """The same in every run, so that seeds can have its signature; no run finds another by chance."""
    return Ed25519PrivateKey.from_private_bytes(_SEED)


@cache
def _keys() -> tuple[SigningKey, ...]:
    jwk = {**OKPAlgorithm.to_jwk(issuer().public_key(), as_dict=True), "kid": "first"}
    return read_key_set(json.dumps({"keys": [jwk]}).encode())


def one(data: bytes) -> None:
    choices = Choices(data)
    rules = choices.one_of((TokenRules(), RULES))
    with suppress(KeySetError):
        assert read_key_set(choices.take(choices.number(2)))
    with suppress(TokenError):
        _check(check_claims(read_claims(choices.take(choices.number(2))), rules, _NOW_MS), rules)
    message = choices.rest()
    for token in (message.decode("latin-1"), message.decode("utf-8", "replace")):
        with suppress(TokenError):
            check_claims(unsecured_claims(token), rules, _NOW_MS)
        with suppress(TokenError):
            check_claims(signed_claims(token, _keys()), rules, _NOW_MS)
    server = OAuthBearerServer(lambda token: check_claims(unsecured_claims(token), rules, _NOW_MS))
    with suppress(SaslError):
        server.respond(message)
        if not server.is_complete:
            server.respond(b"\x01")
    assert bool(server.user) == server.is_complete


def _check(token: BearerToken, rules: TokenRules) -> None:
    assert token.user.strip()
    assert token.expires_at_ms + rules.skew_ms > _NOW_MS
