"""``/v1/slow-requests`` and ``/v1/followed``: the last slow requests, and whose requests are logged one by one."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import bad_request, json_answer, not_found
from lamina.broker.admin.subject import Subject
from lamina.broker.requests.request_watch import FollowError


async def slow_requests(subject: Subject, _request: Request) -> Response:
    watch = subject.request_watch
    return json_answer({"slow_requests": [asdict(slow) for slow in reversed(watch.slow_requests)]})


async def followed(subject: Subject, _request: Request) -> Response:
    return json_answer({"followed": subject.request_watch.followed})


async def follow(subject: Subject, request: Request) -> Response:
    who = request.path_params["who"]
    try:
        subject.request_watch.follow(who)
    except FollowError as error:
        raise bad_request(str(error)) from None
    return json_answer({"followed": subject.request_watch.followed})


async def unfollow(subject: Subject, request: Request) -> Response:
    who = request.path_params["who"]
    if not subject.request_watch.unfollow(who):
        raise not_found(f"{who[:200]!r} is not followed; /v1/followed lists who is")
    return json_answer({"followed": subject.request_watch.followed})
