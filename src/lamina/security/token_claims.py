"""What a token has to say to be somebody's: its claims, and how long it holds (S45, S46).

Owns the checks of claims, and tokens without a signature, which say whatever their bearer likes. Must not know keys.
"""

import json
import math
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina.security.oauthbearer import MOST_TOKEN_BYTES, BearerToken, TokenError

_MS = 1000


@dataclass(frozen=True, slots=True)
class TokenRules:
    """``audiences`` empty and ``issuer`` ``None`` for any."""

    user_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: frozenset[str] = frozenset()
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    skew_ms: int = 30_000
    """How much other machines' clocks may differ."""
    needs_issued_at: bool = True


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> BearerToken:
    """Raises :class:`TokenError`, whose text shows no claim."""
    user = claims.get(rules.user_claim)
    if not isinstance(user, str) or not user.strip() or not _is_encodable(user):
        raise TokenError(f"the token names nobody in {rules.user_claim!r}")
    expires_at_ms = _time_ms(claims, "exp")
    if expires_at_ms is None:
        raise TokenError("the token does not say when it expires")
    if expires_at_ms + rules.skew_ms <= now_ms:
        raise TokenError("the token has expired")
    if _time_ms(claims, "iat") is None and rules.needs_issued_at:
        raise TokenError("the token does not say when it was issued")
    not_before_ms = _time_ms(claims, "nbf")
    if not_before_ms is not None and not_before_ms - rules.skew_ms > now_ms:
        raise TokenError("the token is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenError("the token is of another issuer")
    if rules.audiences and not set(rules.audiences) & _texts(claims, "aud", splits=False):
        raise TokenError("the token is for another audience")
    if not rules.required_scopes <= _texts(claims, rules.scope_claim, splits=True):
        raise TokenError("the token lacks a required scope")
    return BearerToken(user, expires_at_ms)


def _is_encodable(name: str) -> bool:
    """JSON may hold halves of characters: no other broker, and no log, could be told such a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        raise TokenError("the token holds no claims") from None
    if not isinstance(claims, dict):
        raise TokenError("the token holds no claims")
    return claims


def unsecured_claims(token: str) -> dict[str, Any]:
    """Those of a token without a signature (RFC 7515, appendix A.5): for tests, and nothing else."""
    parts = token.split(".") if len(token) <= MOST_TOKEN_BYTES else []
    if len(parts) != 3 or parts[2]:
        raise TokenError("this is not a token without a signature")
    header, payload = (_decoded(part) for part in parts[:2])
    if read_claims(header).get("alg") != "none":
        raise TokenError("this is not a token without a signature")
    return read_claims(payload)


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (Base64Error, ValueError):
        raise TokenError("the token is not Base64") from None


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    seconds = claims.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise TokenError(f"{name!r} of the token is no time")
    return int(min(seconds, 2**53) * _MS)


def _texts(claims: Mapping[str, Any], name: str, *, splits: bool) -> set[str]:
    """A text, or a list of them."""
    value = claims.get(name)
    if isinstance(value, str):
        return set(value.split()) if splits else {value}
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return set(value)
    if value is None:
        return set()
    raise TokenError(f"{name!r} of the token is neither a text nor a list of them")
