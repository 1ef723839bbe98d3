"""PLAIN (RFC 4616): a name and a password in one message (S38).

Owns the message and the comparison, which takes as long for a user that does not exist. Must not know where passwords
come from.
"""

import hashlib
import hmac
from collections.abc import Mapping

from lamina.security.sasl import MOST_MESSAGE_BYTES, SaslError

_PARTS = 3
_NOBODYS_PASSWORD = "a password that no user has, for users that do not exist"


class PlainError(SaslError):
    """The client may know all that went wrong: nothing of it tells whether the user exists."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.told = sentence


class PlainServer:
    """A broker's side of one login; ``passwords`` are by user."""

    expires_at_ms: int | None = None
    most_message_bytes = MOST_MESSAGE_BYTES

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._is_over = False
        self.user = ""
        self.is_complete = False

    def respond(self, message: bytes) -> bytes:
        """Nothing, once the password is right; raises :class:`PlainError`."""
        if self._is_over:
            raise PlainError("Authentication failed: the login is over")
        self._is_over = True
        parts = message.split(b"\0", _PARTS)
        if len(parts) != _PARTS:
            raise PlainError("Authentication failed: a PLAIN message has three parts, with zero bytes between them")
        authorization_id, user, password = (part.decode(errors="replace") for part in parts)
        if not user:
            raise PlainError("Authentication failed: the user name is empty")
        if not password:
            raise PlainError("Authentication failed: the password is empty")
        expected = self._passwords.get(user)
        is_right = hmac.compare_digest(_digest(password), _digest(_NOBODYS_PASSWORD if expected is None else expected))
        if not is_right or expected is None:
            raise PlainError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise PlainError("Authentication failed: one user cannot log in as another")
        self.user = user
        self.is_complete = True
        return b""


def _digest(password: str) -> bytes:
    """Of one length for all, so that the comparison tells nothing of the length."""
    return hashlib.sha256(password.encode()).digest()
