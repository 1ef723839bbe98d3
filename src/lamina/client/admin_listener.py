"""A broker's admin listener: found through the broker's own configuration, asked over HTTP.

Must not know any route.
"""

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable

ADVERTISED = "lamina.admin.advertised.listeners"
_SECONDS = 30.0

# What is on this machine is never asked through a proxy of the environment.
_open = build_opener(ProxyHandler({})).open


class AdminListener:
    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._token = token

    def get(self, *path: str, **query: str) -> dict[str, Any]:
        return self._ask("GET", path, query, None)

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
        self, method: str, path: tuple[str, ...], query: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        url = f"http://{self.address}/" + "/".join(quote(part, safe="") for part in path)
        url += f"?{urlencode(query)}" if query else ""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with _open(Request(url, data, headers, method=method), timeout=_SECONDS) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            raise ClientError(_said(error, self.address)) from error
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(
                f"the admin listener at {self.address} does not answer ({reason}); "
                "lamina.admin.listeners says where the broker has it"
            ) from error


def _said(error: HTTPError, address: str) -> str:
    with error:
        try:
            said = json.load(error)["message"]
        except (ValueError, KeyError, TypeError):
            return f"what answers at {address} is no admin listener of Lamina (HTTP {error.code})"
    if error.code == 401:
        return f"{said}; name the file with --token-file, or set LAMINA_ADMIN_TOKEN"
    return str(said).rstrip(".")


def find_admin_listener(cluster: Cluster, broker_id: str | None, token: str | None) -> AdminListener:
    """That of one broker of the cluster: the one that is named, else the first."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = cluster.admin()
    if broker_id is None:
        broker_id = str(min(node.id for node in cluster.answer(admin.describe_cluster()).nodes))
    resource = ConfigResource(ResourceType.BROKER, broker_id)
    configs = cluster.answer(admin.describe_configs([resource])[resource])
    entry = configs.get(ADVERTISED)
    if entry is None:
        raise ClientError(f"broker {broker_id} has no admin listener: it is not a Lamina")
    address = (entry.value or "").partition(",")[0].strip()
    if not address:
        raise ClientError(f"broker {broker_id} has its admin listener switched off; set lamina.admin.listeners")
    return AdminListener(address, token)
