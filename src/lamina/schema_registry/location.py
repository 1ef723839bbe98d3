"""Where a schema registry is, and how one logs in.

Owns the options, which have the names of Confluent's client for Python. A location goes from process to process, so it
holds the certificates themselves, not the name of their file. Must not know what is asked there.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from urllib.parse import urlsplit

from lamina.schema_registry.errors import RegistryError

USER, TOKEN, CA_FILE = "basic.auth.user.info", "bearer.auth.token", "ssl.ca.location"
TIMEOUT, RETRIES = "timeout", "max.retries"
OPTIONS = (USER, TOKEN, CA_FILE, TIMEOUT, RETRIES)

DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_RETRIES = 3
_LONGEST_SECONDS = 600.0
_MOST_RETRIES = 20


@dataclass(frozen=True, slots=True)
class Location:
    url: str
    authorization: str | None = field(default=None, repr=False)
    """The whole header."""
    certificates: str | None = field(default=None, repr=False)
    """Of the authorities that are trusted, in PEM; ``None`` for those of the system."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    retries: int = DEFAULT_RETRIES


def parse_location(url: str, options: Mapping[str, str]) -> Location:
    """Raises RegistryError with one sentence."""
    if unknown := options.keys() - set(OPTIONS):
        raise RegistryError(f"a schema registry has no option {min(unknown)!r}; the options are {', '.join(OPTIONS)}")
    return Location(
        _checked_url(url),
        _authorization(options.get(USER), options.get(TOKEN)),
        _certificates(options.get(CA_FILE)),
        _number(options, TIMEOUT, DEFAULT_TIMEOUT_SECONDS, 0.1, _LONGEST_SECONDS),
        int(_number(options, RETRIES, DEFAULT_RETRIES, 0, _MOST_RETRIES)),
    )


def _checked_url(url: str) -> str:
    given = url.strip().rstrip("/")
    try:
        parts = urlsplit(given)
        has_host, has_login = bool(parts.hostname) and parts.port != 0, parts.username is not None
    except ValueError:
        raise RegistryError(f"{url!r} is not a URL such as http://localhost:8081") from None
    if has_login:
        raise RegistryError(f"the schema registry's URL holds a login: give it as {USER}")
    if parts.scheme not in ("http", "https") or not has_host:
        raise RegistryError(f"{url!r} is not a URL such as http://localhost:8081")
    if parts.query or parts.fragment or any(char.isspace() or not char.isprintable() for char in given):
        raise RegistryError(f"{url!r} is more than a schema registry's URL: leave out spaces, ? and #")
    return given


def _authorization(user: str | None, token: str | None) -> str | None:
    if user is not None and token is not None:
        raise RegistryError(f"give {USER} or {TOKEN}, not both")
    if user is not None:
        if ":" not in user:
            raise RegistryError(f"{USER} is not of the form NAME:PASSWORD")
        return f"Basic {b64encode(user.encode()).decode()}"
    if token is not None and not (token and token.isascii() and token.isprintable()):
        raise RegistryError(f"{TOKEN} is empty, or holds characters that no token has")
    return None if token is None else f"Bearer {token}"


def _certificates(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        with open(file, encoding="ascii") as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is not in PEM"
        raise RegistryError(f"{CA_FILE}: {file} cannot be read: {reason}") from error
    if "BEGIN CERTIFICATE" not in text:
        raise RegistryError(f"{CA_FILE}: {file} holds no certificate in PEM")
    return text


def _number(options: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    given = options.get(name)
    try:
        number = default if given is None else float(given)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or not least <= number <= most:
        raise RegistryError(f"{name} is {given!r}; it must be a number from {least:g} to {most:g}")
    return number
