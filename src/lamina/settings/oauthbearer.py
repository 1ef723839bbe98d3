"""OAUTHBEARER as one listener has it, read from settings.

Owns what makes a token valid there, and the refusal of a listener that anybody could enter: without keys it takes no
token, unless a setting for tests says so (S45, S81). Must not fetch anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lamina.security.token_claims import TokenRules
from lamina.settings.definition import Setting, SettingError
from lamina.settings.sasl import (
    LAMINA_SASL_OAUTHBEARER_UNSECURED_TOKENS,
    SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS,
    SASL_OAUTHBEARER_EXPECTED_AUDIENCE,
    SASL_OAUTHBEARER_EXPECTED_ISSUER,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_URL,
    SASL_OAUTHBEARER_SCOPE_CLAIM_NAME,
    SASL_OAUTHBEARER_SUB_CLAIM_NAME,
)

SCHEMES = ("https", "http", "file")
_UNSECURED = "unsecuredValidator"

ValueOf = Callable[[Setting[Any]], Any]
"""The value that holds for the mechanism of one listener."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys are that tokens are signed with, and when they are fetched."""

    url: str
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int


@dataclass(frozen=True, slots=True)
class OAuthBearer:
    rules: TokenRules
    keys: KeySource | None
    """``None`` where tokens have no signatures: for tests."""


def oauthbearer(value_of: ValueOf, options: Mapping[str, str]) -> OAuthBearer:
    """``options`` are those of the JAAS entry. Raises :class:`SettingError` for what would let anybody in."""
    url = value_of(SASL_OAUTHBEARER_JWKS_ENDPOINT_URL)
    if not url:
        if not value_of(LAMINA_SASL_OAUTHBEARER_UNSECURED_TOKENS):
            raise SettingError(
                f"OAUTHBEARER needs {SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name}, the keys that tokens are signed with: "
                "without it anybody could make one"
            )
        return OAuthBearer(_unsecured_rules(options), None)
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not (parts.path if parts.scheme == "file" else parts.hostname):
        raise SettingError(
            f"{SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name} = {SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.shown(url)}: "
            f"must be an address of {', '.join(SCHEMES)}"
        )
    rules = TokenRules(
        value_of(SASL_OAUTHBEARER_SUB_CLAIM_NAME),
        value_of(SASL_OAUTHBEARER_SCOPE_CLAIM_NAME),
        frozenset(),
        value_of(SASL_OAUTHBEARER_EXPECTED_AUDIENCE),
        value_of(SASL_OAUTHBEARER_EXPECTED_ISSUER) or None,
        value_of(SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS) * 1000,
    )
    keys = KeySource(
        url,
        value_of(SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS),
        value_of(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS),
        value_of(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS),
    )
    return OAuthBearer(rules, keys)


def _unsecured_rules(options: Mapping[str, str]) -> TokenRules:
    """Those of the JAAS entry, as for Kafka's validator of unsecured tokens."""
    skew = options.get(f"{_UNSECURED}AllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdigit()):
        raise SettingError(f"{_UNSECURED}AllowableClockSkewMs: must be a number of milliseconds")
    return TokenRules(
        options.get(f"{_UNSECURED}PrincipalClaimName", "sub"),
        options.get(f"{_UNSECURED}ScopeClaimName", "scope"),
        frozenset(options.get(f"{_UNSECURED}RequiredScope", "").split()),
        skew_ms=int(skew),
        needs_issued_at=False,
    )
