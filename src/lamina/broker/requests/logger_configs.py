"""Loggers as configs of a broker: their names are those of the loggers, their values Kafka's names of levels.

Owns the step between the two and Kafka's errors. Python has no TRACE, and nothing in Lamina logs below DEBUG: TRACE
sets DEBUG and is told as DEBUG. Must not know any message.
"""

import logging
from collections.abc import Sequence

from lamina.broker.loggers import ROOT, effective_level, logger_names, set_level
from lamina.broker.requests.config_entries import ConfigEntry, ConfigSource, ConfigType
from lamina.errors import InvalidConfig, InvalidRequest
from lamina.image.configs import ConfigOperation, OperationType, check_operations

logger = logging.getLogger(__name__)

RESOURCE_TYPE = 8
"""In requests; no part of the metadata, since levels are not kept."""

LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {level: name for name, level in LEVELS.items()}


def check_logger_resource(name: str, node_id: int) -> None:
    """Raise INVALID_REQUEST unless the resource is this broker: loggers have no cluster-wide levels."""
    if not (name.isascii() and name.isdecimal()):
        raise InvalidRequest(f"a broker's id must be a whole number, not {name!r}")
    if int(name) != node_id:
        raise InvalidRequest(f"this is broker {node_id}, not {name}")


def logger_entries() -> list[ConfigEntry]:
    return [
        ConfigEntry(name, _level_name(effective_level(name)), ConfigSource.BROKER_LOGGER, ConfigType.UNKNOWN)
        for name in (*sorted(logger_names()), ROOT)
    ]


def _level_name(level: int) -> str:
    """Kafka's name; a level between two, which only code can set, is told as the lower one."""
    return _NAMES[max((known for known in _NAMES if known <= level), default=logging.DEBUG)]


def alter_levels(operations: Sequence[ConfigOperation], *, validate_only: bool) -> None:
    """Set and unset levels, all or none."""
    check_operations(operations)
    known = {*logger_names(), ROOT}
    for operation in operations:
        _check(operation, known)
    if validate_only:
        return
    for operation in operations:
        if operation.value is None or operation.type is OperationType.DELETE:
            set_level(operation.name, logging.NOTSET)
            logger.warning("logger %s is reset to its default level by a client", operation.name)
        else:
            set_level(operation.name, LEVELS[operation.value])
            logger.warning("logger %s is set to level %s by a client", operation.name, operation.value)


def _check(operation: ConfigOperation, known: set[str]) -> None:
    if operation.type in (OperationType.APPEND, OperationType.SUBTRACT):
        raise InvalidRequest(f"{operation.name}: {operation.type.name} is not for loggers: a level is set or deleted")
    if operation.name not in known:
        raise InvalidConfig(f"there is no logger {operation.name!r}")
    if operation.type is OperationType.SET and operation.value not in LEVELS:
        raise InvalidConfig(f"{operation.name} = {operation.value}: must be one of {', '.join(LEVELS)}")
    if operation.type is OperationType.DELETE and operation.name == ROOT:
        raise InvalidRequest(f"the level of {ROOT} can be set, not deleted")
