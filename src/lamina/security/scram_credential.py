"""What a broker keeps of a SCRAM user instead of a password, and how it is made of one (RFC 5802, RFC 7677).

Owns the mechanisms, the credential, and what may be stored. PBKDF2 is slow on purpose: :func:`salted_password` belongs
on a thread. As Kafka does, it takes passwords as UTF-8 without SASLprep (S40). Must not know any message, nor where
credentials are kept.
"""

import hashlib
import hmac
from enum import IntEnum
from typing import NamedTuple

LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 16_384
"""Of a credential that is to be stored."""


class ScramMechanism(IntEnum):
    """With the protocol's numbers."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """What clients call it."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def digest(self) -> str:
        """What :mod:`hashlib` calls its hash."""
        return self.name.replace("_", "").lower()


MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
"""By the names that clients use."""


class ScramCredential(NamedTuple):
    """What a broker keeps of a user: enough to check a password, not enough to log in with."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(hidden, iterations={self.iterations})"


def salted_password(digest: str, password: str, salt: bytes, iterations: int) -> bytes:
    """PBKDF2, milliseconds of work: call it on a thread."""
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)


def credential_from(digest: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What is kept of a password, given its salted form."""
    stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", digest), iterations)
