"""Who asks, as the group coordinator stores it. Must not know any API."""

from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import Client


def client_of(request: Request) -> Client:
    host, _, _ = request.client.peer.rpartition(":")
    return Client(request.client_id or "", f"/{host}")
