"""``/v1/log-levels``: how much each room logs, changed while the broker runs.

A room is a package or module of Lamina by its dotted name; what is set on one holds for those inside it. Must not
know who logs.
"""

import json
import logging
import pkgutil
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import lamina
from lamina.broker.admin.answers import bad_request, json_answer, not_found
from lamina.broker.admin.bodies import read_body
from lamina.broker.admin.subject import Subject

logger = logging.getLogger(__name__)

LEVELS = ("debug", "info", "warning", "error", "critical")

_HOUSE = lamina.__name__
_ROOMS = frozenset({_HOUSE, *(f"{_HOUSE}.{module.name}" for module in pkgutil.iter_modules(lamina.__path__))})


async def log_levels(_subject: Subject, _request: Request) -> Response:
    return json_answer({"rooms": [_row(room) for room in sorted(_rooms())]})


async def set_log_level(_subject: Subject, request: Request) -> Response:
    room = _find(request)
    level = _level(await read_body(request))
    logging.getLogger(room).setLevel(level.upper())
    logger.warning("%s logs from level %s on, as the admin listener was told", room, level)
    return json_answer(_row(room))


async def unset_log_level(_subject: Subject, request: Request) -> Response:
    room = _find(request)
    logging.getLogger(room).setLevel(logging.NOTSET)
    logger.warning("%s logs as what it is in does, as the admin listener was told", room)
    return json_answer(_row(room))


def _rooms() -> set[str]:
    """The rooms, and every module in them that has logged or may."""
    inside = (name for name in logging.root.manager.loggerDict if name.startswith(f"{_HOUSE}."))
    return {*_ROOMS, *inside}


def _row(room: str) -> dict[str, Any]:
    found = logging.getLogger(room)
    return {
        "room": room,
        "level": logging.getLevelName(found.getEffectiveLevel()).lower(),
        "is_set": found.level != logging.NOTSET,
    }


def _find(request: Request) -> str:
    room: str = request.path_params["room"]
    if room not in _rooms():
        raise not_found(f"there is no room {room!r}: /v1/log-levels lists them")
    return room


def _level(body: bytes) -> str:
    """From ``{"level": "debug"}``."""
    try:
        given = json.loads(body)
        level = given["level"] if isinstance(given, dict) else None
    except (ValueError, KeyError, RecursionError):
        level = None
    if not isinstance(level, str) or level.lower() not in LEVELS:
        raise bad_request(f'the body must be {{"level": LEVEL}} in JSON, with one of {", ".join(LEVELS)}')
    return level.lower()
