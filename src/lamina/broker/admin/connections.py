"""``/v1/connections``: who is connected to the broker's Kafka listeners."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import page, window
from lamina.broker.admin.subject import Subject
from lamina.broker.network.connection import Connection


async def connections(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    now = subject.loop.time()
    found = [one for one in subject.connections if after is None or one.peer > after]
    found.sort(key=lambda one: one.peer)
    return await page(subject.clocks, "connections", found, limit, lambda one: _row(one, now), lambda one: one.peer)


def _row(connection: Connection, now: float) -> dict[str, Any]:
    return {
        "id": connection.id,
        "peer": connection.peer,
        "listener": connection.listener_name,
        "client_id": connection.client_id,
        "client_software": connection.client_software or None,
        "opened_ms": connection.opened_at_ms,
        "requests": connection.requests,
        "in_bytes": connection.bytes_in,
        "out_bytes": connection.bytes_out,
        "idle_ms": round(max(now - connection.active_at, 0) * 1000),
        "is_waiting": connection.is_waiting,
    }
