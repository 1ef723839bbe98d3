"""A token in a file, as librdkafka asks for it when it logs in.

Owns how long librdkafka takes it to be valid: as long as the token itself says. Brokers check tokens, nobody here does.
Must not know clients.
"""

import json
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.peer.sasl import read_token

_UNKNOWN_SECONDS = 300
"""How long a token is used that does not say how long it is valid."""


def token_callback(path: str, clocks: Clocks = SYSTEM_CLOCKS) -> Callable[[str], tuple[str, float]]:
    """Gives the token of now, and when it ends in seconds since 1970; the file is read each time."""

    def current(_config: str) -> tuple[str, float]:
        token = read_token(path)
        return token, _end_of(token, clocks)

    return current


def _end_of(token: str, clocks: Clocks) -> float:
    try:
        claims = token.split(".")[1]
        return float(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (Base64Error, IndexError, KeyError, TypeError, ValueError):
        return clocks.now_ms() / 1000 + _UNKNOWN_SECONDS
