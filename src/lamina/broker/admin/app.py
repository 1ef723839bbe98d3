"""The application: every request goes through here on its way to its route.

Owns what is refused before a route is asked (a wrong host or origin, a wrong method, no token) and that whatever goes
wrong in one becomes JSON and a line in the log, never the broker's end. Must not know sockets.
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lamina.broker.admin.access import Need, why_refused
from lamina.broker.admin.answers import Refused, not_found, refusal
from lamina.broker.admin.hosts import HostCheck
from lamina.broker.admin.routes import AdminRoute
from lamina.broker.admin.scan_pool import RETRY_SECONDS, TooManyScans
from lamina.broker.admin.subject import Subject
from lamina.broker.counters import Place
from lamina.errors import StorageError, UnknownTopicOrPartition

logger = logging.getLogger(__name__)

HEADER_BYTES = 16 * 1024
PRINCIPAL = "principal"
"""Under which name a connection's state has whoever has shown a certificate."""


def build_app(subject: Subject, routes: Iterable[AdminRoute], check: HostCheck) -> Starlette:
    by_path: defaultdict[str, dict[str, AdminRoute]] = defaultdict(dict)
    for route in routes:
        by_path[route.path][route.method] = route
    app = Starlette(
        routes=[
            Route(path, _endpoint(subject, by_method, check), methods=list(by_method))
            for path, by_method in by_path.items()
        ],
        exception_handlers={HTTPException: _no_route},
    )
    app.router.redirect_slashes = False
    return app


def _endpoint(
    subject: Subject, by_method: dict[str, AdminRoute], check: HostCheck
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = by_method["GET" if request.method == "HEAD" else request.method]
        try:
            _check_header(request)
            check(request)
            _check_origin(request, route.need)
            _check_access(subject, request, route.need)
            return await route.handle(subject, request)
        except Refused as refused:
            return refusal(refused)
        except UnknownTopicOrPartition as error:
            return refusal(not_found(str(error)))
        except StorageError as error:
            return refusal(Refused(503, "offline", str(error)))
        except TooManyScans as error:
            return refusal(Refused(503, "busy", str(error), {"Retry-After": str(RETRY_SECONDS)}))
        except Exception as error:
            subject.counters.count_unexpected(Place.ADMIN)
            logger.error("%s %s failed", route.method, route.path, exc_info=error)
            return refusal(Refused(500, "internal", "the broker failed unexpectedly; its log says how"))

    return endpoint


def _check_header(request: Request) -> None:
    """uvicorn bounds a header that comes in parts, not one that comes at once."""
    if sum(len(name) + len(value) for name, value in request.headers.raw) > HEADER_BYTES:
        raise Refused(431, "too_large", f"a header may have {HEADER_BYTES} bytes", {"Connection": "close"})


def _check_origin(request: Request, need: Need) -> None:
    """A browser says which page has it ask, and shows an operator's certificate whichever that is."""
    origin = request.headers.get("origin")
    if need is Need.CHANGING and origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Refused(403, "wrong_origin", "nothing is changed for a page of another site")


def _check_access(subject: Subject, request: Request, need: Need) -> None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    token = given.strip() if scheme.lower() == "bearer" else None
    if not subject.access.allows(need, token, request.scope.get("state", {}).get(PRINCIPAL)):
        raise Refused(401, "unauthorized", why_refused(need), {"WWW-Authenticate": "Bearer"})


async def _no_route(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: a path or a method that no route has."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    message = f"{request.method} {request.url.path[:200]}: {status.phrase}; /v1/ lists the routes"
    return refusal(Refused(status, status.name.lower(), message, error.headers))
