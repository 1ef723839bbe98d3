"""``/metrics``: every number of the broker, for Prometheus."""

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.subject import Subject
from lamina.broker.metrics.exposition import render


async def metrics(subject: Subject, request: Request) -> Response:
    content_type, text = await render(subject.metrics, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})
