"""Asking a broker's admin listener over HTTP, as a monitor or a curl would."""

import http.client
import json
import socket
from typing import Any, NamedTuple

from tests.broker.process import BrokerProcess

SECONDS = 30.0


class Told(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: Any


def admin_address(broker: BrokerProcess) -> tuple[str, int]:
    [admin] = broker.facts["admin"]
    return str(admin["host"]), int(admin["port"])


def ask(
    broker: BrokerProcess,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Told:
    connection = http.client.HTTPConnection(*admin_address(broker), timeout=SECONDS)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "application/json"
        text = response.read()
        return Told(response.status, response.headers, json.loads(text) if text else None)
    finally:
        connection.close()


def get(broker: BrokerProcess, path: str) -> Any:
    """The body of an answer that is fine."""
    told = ask(broker, path)
    assert told.status == 200, told
    return told.body


def refused(broker: BrokerProcess, path: str, status: int, **how: Any) -> str:
    """The sentence of a refusal with this status."""
    told = ask(broker, path, **how)
    assert told.status == status, told
    assert set(told.body) == {"error", "message"}
    return str(told.body["message"])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def connect(broker: BrokerProcess) -> socket.socket:
    return socket.create_connection(admin_address(broker), timeout=SECONDS)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the broker ends the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
