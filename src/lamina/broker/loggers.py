"""The loggers of this broker and the level of each, which may change while it runs.

A logger has the dotted name of a package or module of Lamina; its level holds for the loggers below it that have none
of their own. ``root`` is above all of them, and above those of the libraries. Levels last until the broker stops. Must
not know who logs, nor who asks.
"""

import logging
import pkgutil

import lamina

ROOT = "root"

_LAMINA = lamina.__name__
_PACKAGES = frozenset(
    {_LAMINA, *(f"{_LAMINA}.{module.name}" for module in pkgutil.iter_modules(lamina.__path__) if module.ispkg)}
)


class _Levels:
    """How often a level was set: for those who keep what follows from one."""

    times_set = 0


LEVELS = _Levels()


def logger_names() -> set[str]:
    """The packages, and every module in them that has logged or may; ``root`` is not among them."""
    inside = (name for name in logging.root.manager.loggerDict if name.startswith(f"{_LAMINA}."))
    return {*_PACKAGES, *inside}


def effective_level(name: str) -> int:
    """What holds for a logger: its own level, or the nearest above it."""
    return logging.getLogger(name).getEffectiveLevel()


def has_own_level(name: str) -> bool:
    return logging.getLogger(name).level != logging.NOTSET


def set_level(name: str, level: int) -> None:
    """``logging.NOTSET`` takes the logger's own level away."""
    logging.getLogger(name).setLevel(level)
    LEVELS.times_set += 1
