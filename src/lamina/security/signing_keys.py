"""The keys that tokens are signed with, and whether a token is (S46, S81).

Owns which algorithms count: only those where whoever checks a signature could not have made it, whatever a token's
header says. Loaded where there are such keys alone: it needs the package PyJWT. Must not know where keys come from.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from jwt import InvalidTokenError, PyJWK, PyJWTError
from jwt.api_jws import PyJWS

from lamina.security.oauthbearer import MOST_TOKEN_BYTES, TokenError, UnknownKey
from lamina.security.token_claims import read_claims

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_LEAST_RSA_BITS = 2048
_TRIED_WITHOUT_ID = 8
"""Keys for a token that does not name its own."""
_SIGNATURES = PyJWS([*_RSA, "ES256", "ES384", "ES512", "EdDSA"])


class KeySetError(ValueError):
    """Bytes that are no set of keys."""


class SigningKey(NamedTuple):
    id: str | None
    algorithms: tuple[str, ...]
    key: Any
    """A public key of the package cryptography."""


def read_key_set(data: bytes) -> tuple[SigningKey, ...]:
    """The keys of a JWK set (RFC 7517) that signatures can be checked with; others are passed over."""
    try:
        found = json.loads(data)["keys"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise KeySetError("not a set of JSON web keys") from None
    keys = [key for entry in found if (key := _key(entry)) is not None] if isinstance(found, list) else []
    if not keys:
        raise KeySetError("no key that signatures can be checked with")
    return tuple(keys)


def _key(entry: Any) -> SigningKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    kind = entry.get("kty")
    algorithms = _ALGORITHMS.get((str(kind), None if kind == "RSA" else str(entry.get("crv"))), ())
    only, key_id = entry.get("alg"), entry.get("kid")
    if only is not None:
        algorithms = tuple(one for one in algorithms if one == only)
    if not algorithms or not isinstance(key_id, str | None):
        return None
    try:
        key = PyJWK(entry, algorithms[0]).key
    except PyJWTError:
        return None
    if kind == "RSA" and key.key_size < _LEAST_RSA_BITS:
        return None
    return SigningKey(key_id, algorithms, key)


def signed_claims(token: str, keys: Sequence[SigningKey]) -> dict[str, Any]:
    """The claims of a token that one of the keys has signed; raises :class:`TokenError`."""
    if len(token) > MOST_TOKEN_BYTES:
        raise TokenError("the token is too large")
    try:
        header = _SIGNATURES.get_unverified_header(token)
    except (InvalidTokenError, RecursionError):
        raise TokenError("the token is malformed") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if key_id is None:
        fitting = [key for key in keys if algorithm in key.algorithms][:_TRIED_WITHOUT_ID]
    else:
        fitting = [key for key in keys if key.id == key_id]
        if not fitting:
            raise UnknownKey("the token is signed with a key that is not known")
    for key in fitting:
        try:
            return read_claims(_SIGNATURES.decode_complete(token, key.key, list(key.algorithms))["payload"])
        except (PyJWTError, RecursionError):
            continue
    raise TokenError("the token's signature is wrong, or by an algorithm that is not taken")
