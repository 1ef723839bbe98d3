"""Who asks, as the group coordinator stores it. Must not know any API."""

from lamina.broker.requests.router import Request
from lamina.coordinators.group_requests import Client


def client_of(request: Request) -> Client:
    host, _, _ = request.connection.peer.rpartition(":")
    return Client(request.client_id or "", f"/{host}")
