"""Calling the admin application without sockets."""

import json
from dataclasses import replace
from typing import Any

from lamina.broker.admin.access import Access
from lamina.broker.admin.app import build_app
from lamina.broker.admin.hosts import HostCheck
from lamina.broker.admin.routes import ROUTES, AdminRoute
from lamina.broker.admin.scan_pool import ScanPool
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.token import Token
from lamina.broker.admin_parts import admin_subject
from tests.broker.no_listening import HasParts, no_listening

TOKEN = "correct-horse-battery-staple"


def subject_of(broker: HasParts, scan_pool: ScanPool | None = None) -> Subject:
    """A broker as the routes see it; ``TOKEN`` is its token."""
    subject = admin_subject(
        broker.parts, no_listening(broker), Access(Token(TOKEN), None, is_reading_open=True), (), ()
    )
    return subject if scan_pool is None else replace(subject, scan_pool=scan_pool)


async def call(
    subject: Subject, path: str, *more: AdminRoute, token: str | None = None, **headers: str
) -> tuple[int, Any]:
    """The status and the body of a GET."""
    app = build_app(subject, (*ROUTES, *more), HostCheck((), ()))
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            *([] if token is None else [(b"authorization", f"Bearer {token}".encode())]),
            *((name.encode(), value.encode()) for name, value in headers.items()),
        ],
        "server": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent))
