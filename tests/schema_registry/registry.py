"""A schema registry over real HTTP on loopback, with Confluent's paths and errors, and ways to be a bad one."""

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread
from typing import Any
from urllib.parse import unquote

import fastavro

Reply = tuple[int, Mapping[str, str], bytes]
"""Status, headers, body."""


@dataclass(slots=True)
class Registry:
    url: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    """Given first, one after another, whatever is asked."""
    always: Reply | None = None
    login: str | None = None

    def add(
        self, schema: object, kind: str = "AVRO", subject: str = "s", references: list[dict[str, Any]] | None = None
    ) -> int:
        """A schema as text, or as what is to be written as JSON."""
        text = schema if isinstance(schema, str) and kind != "AVRO" else json.dumps(schema)
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})
        if references:
            self.schemas[number]["references"] = references
        self.subjects.setdefault(subject, []).append(number)
        return number

    def reply(self, path: str, authorization: str | None) -> Reply:
        self.asked.append(path)
        self.authorizations.append(authorization)
        if self.replies:
            return self.replies.pop(0)
        if self.always is not None:
            return self.always
        if self.login is not None and authorization != self.login:
            return _json(401, {"error_code": 401, "message": "Unauthorized"})
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["schemas", "ids", number]:
                found = self.schemas.get(int(number))
                return (
                    _json(404, {"error_code": 40403, "message": "Schema not found"})
                    if found is None
                    else _json(200, found)
                )
            case ["subjects", subject, "versions", version]:
                numbers = self.subjects.get(subject)
                if numbers is None:
                    return _json(404, {"error_code": 40401, "message": "Subject not found."})
                newest = numbers[-1 if version == "latest" else int(version) - 1]
                return _json(200, {"subject": subject, "id": newest, "version": 1} | self.schemas[newest])
        return _json(404, {"error_code": 404, "message": "HTTP 404 Not Found"})


def _json(status: int, body: object) -> Reply:
    return status, {"Content-Type": "application/vnd.schemaregistry.v1+json"}, json.dumps(body).encode()


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = registry.reply(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        registry.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def avro(schema: Any, value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def pauses() -> tuple[list[float], Callable[[float], None]]:
    """Nobody waits; it is noted how long somebody would have."""
    noted: list[float] = []
    return noted, noted.append
