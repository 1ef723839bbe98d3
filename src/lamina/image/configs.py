"""Configs that are set while running: which may be, and what an alteration makes of them.

Owns the operations of IncrementalAlterConfigs and Kafka's errors for configs that a topic or a broker cannot
have. Must not know what a config does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from lamina.errors import InvalidConfig, InvalidRequest
from lamina.image.image import ConfigResource, ResourceType
from lamina.settings.definition import SettingError
from lamina.settings.group_config import check_group_names
from lamina.settings.kinds import LIST, TRIMMED
from lamina.settings.lists import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from lamina.settings.resolve import check_given
from lamina.settings.topic_config import check_overrides
from lamina.settings.values import Source

_SETTINGS = {
    ResourceType.TOPIC: TOPIC_SETTINGS,
    ResourceType.BROKER: BROKER_SETTINGS,
    ResourceType.GROUP: GROUP_SETTINGS,
}


class OperationType(IntEnum):
    """With the protocol's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigOperation:
    name: str
    type: OperationType
    value: str | None = None
    """``None`` only where there is nothing to give: for DELETE."""


def alter_configs(
    resource: ConfigResource, current: Mapping[str, str], operations: Sequence[ConfigOperation]
) -> dict[str, str]:
    """What is set on a resource after the operations; ``check_configs`` says whether it may be."""
    check_operations(operations)
    altered = dict(current)
    for operation in operations:
        if operation.value is None or operation.type is OperationType.DELETE:
            altered.pop(operation.name, None)
        elif operation.type is OperationType.SET:
            altered[operation.name] = operation.value
        else:
            altered[operation.name] = _alter_list(resource, altered.get(operation.name), operation, operation.value)
    return altered


def check_operations(operations: Sequence[ConfigOperation]) -> None:
    """Raise for what is wrong with the operations themselves, whatever they are done to."""
    seen: set[str] = set()
    for operation in operations:
        if operation.name in seen:
            raise InvalidRequest(f"{operation.name}: named twice in one request")
        seen.add(operation.name)
        if operation.value is None and operation.type is not OperationType.DELETE:
            raise InvalidRequest(f"{operation.name}: {operation.type.name} needs a value")


def _alter_list(resource: ConfigResource, current: str | None, operation: ConfigOperation, value: str) -> str:
    """Add or take out entries; a list that is not set begins as its default."""
    setting = _SETTINGS[resource.type].get(operation.name)
    if setting is None or setting.kind is not LIST:
        raise InvalidConfig(f"{operation.name}: {operation.type.name} is for lists only")
    if current is None:
        current = setting.format(setting.default or ())
    entries, named = _entries(current), _entries(value)
    if operation.type is OperationType.APPEND:
        entries += [entry for entry in dict.fromkeys(named) if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in named]
    return ",".join(entries)


def _entries(text: str) -> list[str]:
    return [entry for entry in (part.strip(TRIMMED) for part in text.split(",")) if entry]


def check_configs(resource: ConfigResource, configs: Mapping[str, str]) -> None:
    """Raise Kafka's error for a config that the resource cannot have: brokers have another one than topics."""
    if resource.type is not ResourceType.BROKER:
        try:
            (check_overrides if resource.type is ResourceType.TOPIC else check_group_names)(configs)
        except SettingError as error:
            raise InvalidConfig(str(error)) from None
        return
    source = Source.DYNAMIC_BROKER if resource.name else Source.DYNAMIC_DEFAULT
    try:
        for name, text in configs.items():
            check_given(name, text, source)
    except SettingError as error:
        raise InvalidRequest(str(error)) from None
