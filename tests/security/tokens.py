"""Tokens and key sets for tests: an issuer of a moment."""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000


class Issuer:
    """Signs tokens, and publishes its public key."""

    def __init__(self, key_id: str = "first", algorithm: str = "RS256", key: Any = None) -> None:
        self.key_id, self.algorithm = key_id, algorithm
        is_rsa = algorithm[0] in "RP"
        fresh = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
        self.key: Any = key or fresh
        kind: Any = RSAAlgorithm if is_rsa else ECAlgorithm
        self.jwk: dict[str, Any] = {**kind.to_jwk(self.key.public_key(), as_dict=True), "kid": key_id}

    def token(self, headers: dict[str, Any] | None = None, *, says: dict[str, Any] | None = None, **claims: Any) -> str:
        """For Alice, for an hour, unless the claims say something else; ``None`` takes one out."""
        told = {"sub": "alice", "iat": NOW, "exp": NOW + 3600, **(says or {}), **claims}
        payload = {name: value for name, value in told.items() if value is not None}
        return jwt.encode(payload, self.key, self.algorithm, {"kid": self.key_id, **(headers or {})})


def key_set(*issuers: Issuer, **more: Any) -> bytes:
    return json.dumps({"keys": [{**one.jwk, **more} for one in issuers]}).encode()
