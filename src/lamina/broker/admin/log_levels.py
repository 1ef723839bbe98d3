"""``/v1/log-levels``: the level of each logger, changed while the broker runs.

Owns the form of the answers. Must not know which loggers there are.
"""

import json
import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import bad_request, json_answer, not_found, read_body
from lamina.broker.admin.subject import Subject
from lamina.broker.loggers import effective_level, has_own_level, logger_names, set_level

logger = logging.getLogger(__name__)

LEVELS = ("debug", "info", "warning", "error", "critical")


async def log_levels(_subject: Subject, _request: Request) -> Response:
    return json_answer({"loggers": [_row(name) for name in sorted(logger_names())]})


async def set_log_level(_subject: Subject, request: Request) -> Response:
    name = _find(request)
    level = _level(await read_body(request))
    set_level(name, logging.getLevelNamesMapping()[level.upper()])
    logger.warning("logger %s is set to level %s through the admin listener", name, level)
    return json_answer(_row(name))


async def unset_log_level(_subject: Subject, request: Request) -> Response:
    name = _find(request)
    set_level(name, logging.NOTSET)
    logger.warning("logger %s is reset to its default level through the admin listener", name)
    return json_answer(_row(name))


def _row(name: str) -> dict[str, Any]:
    level = logging.getLevelName(effective_level(name)).lower()
    return {"logger": name, "level": level, "is_set": has_own_level(name)}


def _find(request: Request) -> str:
    name: str = request.path_params["logger"]
    if name not in logger_names():
        raise not_found(f"there is no logger {name!r}: /v1/log-levels and `lamina watch log-levels --all` list them")
    return name


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
