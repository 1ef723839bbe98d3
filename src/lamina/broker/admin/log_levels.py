"""``/v1/log-levels``: the level of each logger, changed while the broker runs.

A logger has the dotted name of a package or module of Lamina; its level holds for the loggers below it that have none
of their own. Must not know who logs.
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

_ROOT = lamina.__name__
_PACKAGES = frozenset({_ROOT, *(f"{_ROOT}.{module.name}" for module in pkgutil.iter_modules(lamina.__path__))})


async def log_levels(_subject: Subject, _request: Request) -> Response:
    return json_answer({"loggers": [_row(name) for name in sorted(_logger_names())]})


async def set_log_level(_subject: Subject, request: Request) -> Response:
    name = _find(request)
    level = _level(await read_body(request))
    logging.getLogger(name).setLevel(level.upper())
    logger.warning("logger %s is set to level %s through the admin listener", name, level)
    return json_answer(_row(name))


async def unset_log_level(_subject: Subject, request: Request) -> Response:
    name = _find(request)
    logging.getLogger(name).setLevel(logging.NOTSET)
    logger.warning("logger %s is reset to its default level through the admin listener", name)
    return json_answer(_row(name))


def _logger_names() -> set[str]:
    """The packages, and every module in them that has logged or may."""
    inside = (name for name in logging.root.manager.loggerDict if name.startswith(f"{_ROOT}."))
    return {*_PACKAGES, *inside}


def _row(name: str) -> dict[str, Any]:
    found = logging.getLogger(name)
    return {
        "logger": name,
        "level": logging.getLevelName(found.getEffectiveLevel()).lower(),
        "is_set": found.level != logging.NOTSET,
    }


def _find(request: Request) -> str:
    name: str = request.path_params["logger"]
    if name not in _logger_names():
        raise not_found(f"there is no logger {name!r}: /v1/log-levels lists them")
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
