"""What is asked of a schema registry, over HTTP: a schema by its id, and the latest of a subject.

A registry that does not answer, or that is none, is a RegistryError; so is one that refuses the login. An id that a
registry does not know is NotDecodable, for the next value may have another one. Redirects are not followed, for they
would take the login to somebody else. Must not know what a schema means.
"""

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause
from lamina.schema_registry.errors import NotDecodable, RegistryError, in_short
from lamina.schema_registry.location import CA_FILE, TOKEN, USER, Location

MAX_SCHEMA_BYTES = 16 << 20
MAX_REFERENCES = 200

_CHUNK_BYTES = 1 << 16
_FIRST_WAIT_SECONDS = 0.25
_UNKNOWN_ID = 40403
_UNKNOWN = frozenset({40401, 40402, _UNKNOWN_ID})
"""Subject, version, schema; Confluent's numbers."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    kind: str
    """``AVRO``, ``JSON`` or ``PROTOBUF``."""
    text: str
    references: tuple[str, ...] = ()
    """The schemas that it refers to, each after those that it needs itself."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    place: str | None = None
    """Where a redirect leads."""


class _TooLarge(Exception):
    pass


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class RegistryClient:
    def __init__(
        self, location: Location, pause: Callable[[float], None] = pause, clocks: Clocks = SYSTEM_CLOCKS
    ) -> None:
        self._clocks = clocks
        self._location = location
        self._pause = pause
        self._opener = _opener(location)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises NotDecodable where there is none."""
        try:
            found = self._found(f"/schemas/ids/{schema_id}")
            if found is None:
                raise NotDecodable(f"the schema registry at {self._location.url} has no schema {schema_id}")
            return self._whole(found)
        except _TooLarge:
            raise NotDecodable(f"schema {schema_id} is larger than {MAX_SCHEMA_BYTES >> 20} MiB") from None

    def latest(self, subject: str) -> RegisteredSchema:
        try:
            found = self._version(subject, "latest")
            if found is None:
                raise RegistryError(f"the schema registry at {self._location.url} has no subject {subject!r}")
            return self._whole(found)
        except NotDecodable as error:
            raise RegistryError(f"subject {subject}: {error}") from error
        except _TooLarge:
            raise RegistryError(f"subject {subject}: its schema is larger than {MAX_SCHEMA_BYTES >> 20} MiB") from None

    def _version(self, subject: str, version: object) -> dict[str, Any] | None:
        return self._found(f"/subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}")

    def _whole(self, found: dict[str, Any]) -> RegisteredSchema:
        texts: dict[tuple[str, str], str] = {}
        self._collect(found, texts)
        return RegisteredSchema(str(found.get("schemaType") or "AVRO").upper(), found["schema"], tuple(texts.values()))

    def _collect(self, found: dict[str, Any], texts: dict[tuple[str, str], str]) -> None:
        """A schema stands after those that it refers to, also where several refer to it."""
        for reference in found.get("references") or ():
            try:
                key = str(reference["subject"]), str(reference["version"])
            except (TypeError, KeyError):
                raise self._no_registry("a reference without subject and version") from None
            if key in texts:
                continue
            texts[key] = ""  # One that refers to itself ends here.
            if len(texts) > MAX_REFERENCES:
                raise NotDecodable(f"its schema refers to more than {MAX_REFERENCES} others")
            referred = self._version(*key)
            if referred is None:
                raise NotDecodable(f"its schema refers to version {key[1]} of subject {key[0]}, which is not there")
            self._collect(referred, texts)
            texts[key] = texts.pop(key) or referred["schema"]

    def _found(self, path: str) -> dict[str, Any] | None:
        """``None`` where the registry says that it has no such thing."""
        answer = self._answer(path)
        if answer.place is not None:
            raise RegistryError(
                f"the schema registry at {self._location.url} redirects to {answer.place}; give that URL"
            )
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise RegistryError(
                f"the schema registry at {self._location.url} refuses this login (HTTP {answer.status}); "
                f"check {USER} or {TOKEN}"
            )
        try:
            said = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise self._no_registry(f"HTTP {answer.status} without JSON") from None
        if isinstance(said, dict) and answer.status == HTTPStatus.OK and isinstance(said.get("schema"), str):
            return said
        if isinstance(said, dict) and answer.status == HTTPStatus.NOT_FOUND and said.get("error_code") in _UNKNOWN:
            return None
        raise self._no_registry(f"HTTP {answer.status} without a schema")

    def _no_registry(self, what: str) -> RegistryError:
        return RegistryError(f"what answers at {self._location.url} is not a schema registry ({what}); check the URL")

    def _answer(self, path: str) -> _Answer:
        reason, wait_seconds = "", _FIRST_WAIT_SECONDS
        for attempt in range(self._location.retries + 1):
            if attempt:
                self._pause(wait_seconds)
                wait_seconds *= 2
            try:
                answer = self._ask(path)
            except (OSError, HTTPException, ValueError) as error:
                reason = in_short(getattr(error, "reason", None) or error or type(error).__name__)
                continue
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                return answer
            reason = f"HTTP {answer.status}"
        times = f", asked {self._location.retries + 1} times" if self._location.retries else ""
        raise RegistryError(
            f"the schema registry at {self._location.url} does not answer ({reason}{times}); "
            "check the URL, and that it runs"
        )

    def _ask(self, path: str) -> _Answer:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._location.authorization is not None:
            headers["Authorization"] = self._location.authorization
        until = self._clocks.monotonic_seconds() + self._location.timeout_seconds
        request = Request(self._location.url + path, headers=headers)
        try:
            with self._opener.open(request, timeout=self._location.timeout_seconds) as response:
                return _Answer(response.status, self._body(response, until))
        except HTTPError as error:
            with error:
                place = error.headers.get("Location") if 300 <= error.code < 400 else None
                return _Answer(error.code, self._body(error, until), place)

    def _body(self, response: Any, until: float) -> bytes:
        """The timeout of a socket begins again with every byte that comes; this one does not."""
        body = bytearray()
        while chunk := response.read1(_CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_SCHEMA_BYTES:
                raise _TooLarge
            if self._clocks.monotonic_seconds() > until:
                raise TimeoutError("timed out")
        return bytes(body)


def _opener(location: Location) -> OpenerDirector:
    if not location.url.startswith("https:"):
        return build_opener(_NoRedirects)
    try:
        context = ssl.create_default_context(cadata=location.certificates)
    except (ssl.SSLError, ValueError) as error:
        raise RegistryError(f"{CA_FILE} holds no certificates in PEM") from error
    return build_opener(_NoRedirects, HTTPSHandler(context=context))
