"""``/healthz``, ``/readyz`` and ``/metrics``: what is asked again and again by whoever watches over the broker.

Owns the reasons for not being ready, and warnings of what a broker bears. While logs are opened and recovered at start,
both are answered already.
"""

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import json_answer
from lamina.broker.admin.subject import Subject
from lamina.broker.metrics.exposition import render


async def alive(_subject: Subject, _request: Request) -> Response:
    """Answered on the loop that serves Kafka clients: an answer shows that the loop turns."""
    return json_answer({"status": "alive"})


async def ready(subject: Subject, _request: Request) -> Response:
    reasons = _reasons(subject)
    told = {"status": "not_ready" if reasons else "ready", "reasons": reasons, "warnings": _warnings(subject)}
    return json_answer(told, 503 if reasons else 200)


def _reasons(subject: Subject) -> list[str]:
    readiness = subject.readiness
    reasons = []
    if readiness.is_stopping:
        reasons.append("the broker is stopping")
    elif not readiness.is_ready:
        opened = f"{readiness.logs_opened} of {readiness.logs} logs are open"
        reasons.append(f"the broker is recovering, {readiness.percent} %: {opened}")
    return reasons + [
        f"{directory.path} is offline: {directory.failure}"
        for directory in subject.directories
        if directory.failure is not None
    ]


def _warnings(subject: Subject) -> list[str]:
    """Clients should come all the same: what all in-sync members have is acknowledged, and read."""
    low = [space.sentence for space in subject.directories.low]
    is_lost = subject.metrics.was_session_proven() and not subject.metrics.is_session_proven()
    if not subject.readiness.is_ready or not is_lost:
        return low
    away = "ZooKeeper does not answer this broker: writes with acks 0 and 1 are refused, and no metadata changes"
    return [away, *low]


async def metrics(subject: Subject, request: Request) -> Response:
    content_type, text = await render(subject.metrics, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})
