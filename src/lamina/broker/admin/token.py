"""The secrets that a request must carry: ``LAMINA_ADMIN_TOKEN``, else ``admin.token``, to change anything; to see what
is not for everybody, ``LAMINA_ADMIN_VIEWER_TOKEN``, else ``admin.viewer.token``.

Owns the files: each made once, readable by its owner alone, whole or not there. No token is ever logged. Must not know
requests.
"""

import hmac
import logging
import os
import secrets

logger = logging.getLogger(__name__)

ADMIN_TOKEN = "admin.token"
VARIABLE = "LAMINA_ADMIN_TOKEN"
VIEWER_TOKEN = "admin.viewer.token"
VIEWER_VARIABLE = "LAMINA_ADMIN_VIEWER_TOKEN"

_TOKEN_BYTES = 32
_LEAST_LENGTH = 16
_MOST_LENGTH = 1024
_OWNER_ONLY = 0o600


class TokenError(Exception):
    """Why there is no token, in one sentence."""


class Token:
    def __init__(self, text: str) -> None:
        self._bytes = text.encode()

    def __repr__(self) -> str:
        return "Token([hidden])"

    def matches(self, given: str) -> bool:
        """Takes the same time whatever was given."""
        return hmac.compare_digest(given.encode(errors="replace"), self._bytes)


def find_token(data_directory: str, name: str = ADMIN_TOKEN, variable: str = VARIABLE) -> Token | None:
    """A token of this broker, made at its first start. ``None``, and a line in the log, where there can be none."""
    without = "changed" if name == ADMIN_TOKEN else "shown to viewers"
    try:
        given = os.environ.get(variable)
        return Token(_checked(given, variable) if given else _from_file(os.path.join(data_directory, name)))
    except TokenError as error:
        logger.error("nothing can be %s through the admin listener: %s", without, error)
    except OSError as error:
        logger.error("nothing can be %s through the admin listener: %s: %s", without, error.filename, error.strerror)
    return None


def _from_file(path: str) -> str:
    if not os.path.lexists(path):
        _make(path)
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_MOST_LENGTH + 2)
    if mode & 0o077:
        os.chmod(path, _OWNER_ONLY)
        logger.warning(
            "%s could be read by others, which is fixed now. If somebody has read the token, remove the file: the next "
            "start makes another",
            path,
        )
    return _checked(text.decode("ascii", errors="replace").strip(), path)


def _make(path: str) -> None:
    temporary = path + ".tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, _OWNER_ONLY)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, _OWNER_ONLY)
        file.write(f"{secrets.token_hex(_TOKEN_BYTES)}\n".encode())
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _checked(text: str, source: str) -> str:
    if not _LEAST_LENGTH <= len(text) <= _MOST_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        remedy = (
            "set another"
            if source in (VARIABLE, VIEWER_VARIABLE)
            else "remove the file, and the next start makes another"
        )
        raise TokenError(f"{source} must hold {_LEAST_LENGTH} to {_MOST_LENGTH} visible ASCII characters: {remedy}")
    return text
