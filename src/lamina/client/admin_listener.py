"""A broker's admin listener: found through the broker's own configuration, asked over HTTP.

Must not know any route.
"""

import json
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable
from lamina.peer.security import tls_context
from lamina.peer.security_properties import SecurityPropertyError, parse_tls

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry

ADVERTISED = "lamina.admin.advertised.listeners"
TOKEN_FILE = "admin.token"
VIEWER_TOKEN_FILE = "admin.viewer.token"
"""Enough to read."""
TOKEN_VARIABLE = "LAMINA_ADMIN_TOKEN"
_DATA_DIR, _LOG_DIRS, _LOG_DIR = "lamina.data.dir", "log.dirs", "log.dir"
_SECONDS = 30.0

# What is on this machine is never asked through a proxy of the environment.
_open = build_opener(ProxyHandler({})).open


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    source: str
    """The file or the variable that it is from."""


class NotThere(ClientError):
    """What was asked for does not exist on this broker."""


class AdminListener:
    def __init__(
        self,
        address: str,
        token: Token | None = None,
        token_place: str = "its data directory",
        seconds: float = _SECONDS,
        open_url: Callable[..., Any] = _open,
    ) -> None:
        """``token_place`` is where the broker keeps its token, for the message when the token is missing or wrong.

        The address may begin with ``https://``. An answer is waited for ``seconds`` long.
        """
        self.address = address
        self._open_url = open_url
        self._seconds = seconds
        self._token = token
        self._token_place = token_place

    def get(self, *path: str, **query: str) -> dict[str, Any]:
        return self._ask("GET", path, query, None)

    def get_health(self, *path: str) -> dict[str, Any]:
        """Answered with 503 as well: by it a broker tells that something is not well with it."""
        return self._ask("GET", path, {}, None, also=503)

    def pages(self, rows: str, *path: str, **query: str) -> Iterator[dict[str, Any]]:
        """All rows of a list that comes in pages."""
        after: str | None = None
        while True:
            page = self.get(*path, **query, **({} if after is None else {"after": after}))
            yield from page[rows]
            if page["next_after"] is None:
                return
            after = str(page["next_after"])

    def put(self, *path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._ask("PUT", path, {}, body or {})

    def post(self, *path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._ask("POST", path, {}, body or {})

    def delete(self, *path: str) -> dict[str, Any]:
        return self._ask("DELETE", path, {}, None)

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        also: int | None = None,
    ) -> dict[str, Any]:
        """``also`` is an HTTP status, beside 200, that is no refusal."""
        url = self.address if "://" in self.address else f"http://{self.address}"
        url += "/" + "/".join(quote(part, safe="") for part in path)
        url += f"?{urlencode(query)}" if query else ""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token.text}"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with self._opened(Request(url, data, headers, method=method), also) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            refusal = NotThere if error.code == HTTPStatus.NOT_FOUND else ClientError
            raise refusal(self._refusal(error)) from error
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(
                f"the admin listener at {self.address} does not answer ({reason}); "
                "lamina.admin.listeners says where the broker has it"
            ) from error

    def _opened(self, request: Request, also: int | None) -> Any:
        try:
            return self._open_url(request, timeout=self._seconds)
        except HTTPError as error:
            if error.code == also:
                return error
            raise

    def _refusal(self, error: HTTPError) -> str:
        with error:
            try:
                said = json.load(error)["message"]
            except (ValueError, KeyError, TypeError):
                return f"what answers at {self.address} is not an admin listener of Lamina (HTTP {error.code})"
        if error.code != 401:
            return str(said).rstrip(".")
        why = (
            "the broker wants its admin token for this"
            if self._token is None
            else f"the broker does not accept the admin token from {self._token.source}"
        )
        return (
            f"{why}: name the token file with --token-file, or put the token into {TOKEN_VARIABLE}; "
            f"the broker keeps the file {TOKEN_FILE} in {self._token_place}"
        )


def find_admin_listener(
    cluster: Cluster, broker_id: str | None, token: Token | None, seconds: float = _SECONDS
) -> AdminListener:
    """That of one broker of the cluster: the one that is named, else the first.

    Where it speaks TLS, the client's own properties say whom to trust.
    """
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = cluster.admin()
    if broker_id is None:
        broker_id = str(min(node.id for node in cluster.answer(admin.describe_cluster()).nodes))
    resource = ConfigResource(ResourceType.BROKER, broker_id)
    configs = cluster.answer(admin.describe_configs([resource])[resource])
    entry = configs.get(ADVERTISED)
    if entry is None:
        raise ClientError(f"broker {broker_id} has no admin listener: it is not a Lamina broker")
    address = (entry.value or "").partition(",")[0].strip()
    if not address:
        raise ClientError(f"broker {broker_id} has its admin listener switched off; set lamina.admin.listeners")
    if not address.startswith("https://"):
        return AdminListener(address, token, _token_place(configs), seconds)
    try:
        context = tls_context(parse_tls(cluster.security))
    except SecurityPropertyError as error:
        raise ClientError(str(error)) from error
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    return AdminListener(address, token, _token_place(configs), seconds, opener.open)


def _token_place(configs: "Mapping[str, ConfigEntry]") -> str:
    """The data directory, by the rule of the broker: it is the first of the log directories unless it is given."""
    values = {name: entry.value for name, entry in configs.items() if entry.value}
    is_apart = _DATA_DIR in configs and not configs[_DATA_DIR].is_default
    logs = values.get(_LOG_DIRS) or values.get(_LOG_DIR) or ""
    directory = (values.get(_DATA_DIR, "") if is_apart or not logs else logs).partition(",")[0].strip()
    if not directory:
        return "its data directory"
    if posixpath.isabs(directory):
        return directory
    return f"its data directory, {directory!r} below the directory that it was started in"
