"""``/v1/brokers``: who is in the cluster, and what this broker knows of itself alone."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina import __version__
from lamina.broker.admin.answers import json_answer
from lamina.broker.admin.subject import Subject
from lamina.image.image import Broker


async def brokers(subject: Subject, _request: Request) -> Response:
    image = subject.metadata.image
    return json_answer(
        {
            "cluster_id": image.cluster_id,
            "controller_id": image.controller_id,
            "brokers": [_row(subject, broker) for _, broker in sorted(image.brokers.items())],
        }
    )


def _row(subject: Subject, broker: Broker) -> dict[str, Any]:
    is_this = broker.id == subject.metadata.node_id
    return {
        "node_id": broker.id,
        "rack": broker.rack,
        "is_controller": broker.id == subject.metadata.image.controller_id,
        "is_this_broker": is_this,
        "endpoints": [
            {"name": name, "host": endpoint.host, "port": endpoint.port} for name, endpoint in broker.endpoints.items()
        ],
        "admin": [listener.address for listener in subject.advertised] if is_this else None,
        "version": __version__ if is_this else None,
        "started_ms": subject.started_ms if is_this else None,
        "partitions": len(subject.partitions) if is_this else None,
        "connections": len(subject.connections) if is_this else None,
    }
