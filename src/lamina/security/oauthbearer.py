"""OAUTHBEARER (RFC 7628): a token in one message, and one more when it is refused (S45).

Owns the messages. Must not know what makes a token valid.
"""

import json
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from lamina.security.sasl import MOST_MESSAGE_BYTES, SaslError

_MESSAGE = re.compile(r"n,(?:a=((?:[^=,\x00\x01]|=2C|=3D)+))?,\x01((?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)*)\x01")
_BEARER = re.compile(r"bearer +([A-Za-z0-9._-]+)", re.IGNORECASE)
_AUTHORIZATION = "auth"
MOST_TOKEN_BYTES = 64 * 1024
_MOST_EXTENSIONS = 100
"""Each is looked at on the loop, before anybody has logged in."""
_REFUSED = json.dumps({"status": "invalid_token"})


class BearerToken(NamedTuple):
    """A token that is valid."""

    user: str
    expires_at_ms: int


class TokenError(SaslError):
    """A token that is not valid; the text is for the log."""


class UnknownKey(TokenError):
    """It is signed with a key that is not in the set: there may be a newer set."""


class OAuthBearerError(SaslError):
    """A login that ends, with what the client is told."""

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class OAuthBearerServer:
    """A broker's side of one login. ``validate`` raises :class:`TokenError`."""

    most_message_bytes = MOST_TOKEN_BYTES + MOST_MESSAGE_BYTES

    def __init__(self, validate: Callable[[str], BearerToken]) -> None:
        self._validate = validate
        self._state = _State.FIRST
        self._reason = ""
        self.user = ""
        self.expires_at_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        return self._state is _State.COMPLETE

    def respond(self, message: bytes) -> bytes:
        """Nothing for a valid token; raises :class:`OAuthBearerError`.

        For one that is not valid the answer says so without ending the login; when the client has acknowledged that,
        the login fails.
        """
        state, self._state = self._state, _State.FAILED
        if state is _State.REFUSED:
            raise OAuthBearerError(self._reason, _REFUSED)
        if state is not _State.FIRST:
            raise OAuthBearerError("the login is over")
        wanted, token = _read(message)
        try:
            valid = self._validate(token)
        except TokenError as error:
            self._reason = str(error)
            self._state = _State.REFUSED
            return _REFUSED.encode()
        if wanted not in ("", valid.user):
            sentence = "Authentication failed: one user cannot log in as another"
            raise OAuthBearerError(sentence, sentence)
        self.user, self.expires_at_ms = valid
        self._state = _State.COMPLETE
        return b""


class _State(Enum):
    FIRST = auto()
    REFUSED = auto()
    COMPLETE = auto()
    FAILED = auto()


def _read(message: bytes) -> tuple[str, str]:
    """The user whose rights are wanted, if any, and the token."""
    if message.count(b"\x01") > _MOST_EXTENSIONS:
        raise OAuthBearerError("the client's message has too many extensions")
    match = _MESSAGE.fullmatch(message.decode("ascii", "replace"))
    pairs = [pair.partition("=") for pair in match[2].split("\x01")] if match is not None else []
    values = [value for key, _, value in pairs if key == _AUTHORIZATION]
    bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    if match is None or bearer is None:
        raise OAuthBearerError("the client's message is malformed")
    return (match[1] or "").replace("=2C", ",").replace("=3D", "="), bearer[1]
