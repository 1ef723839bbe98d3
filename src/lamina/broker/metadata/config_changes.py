"""Changing configs: what AlterConfigs and IncrementalAlterConfigs have in common.

Owns which resources have configs here and the one change that sets them: those that are fine are set together,
the others keep what they had and get their error. What a broker could not run with is refused before it is
stored. Must not know requests.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import InvalidConfig, InvalidRequest, KafkaError
from lamina.image.changes import set_configs
from lamina.image.configs import check_configs
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic_names import check_topic_name
from lamina.settings.cleaner import LOG_CLEANER_THREADS
from lamina.settings.cleaner_limits import check_threads
from lamina.settings.definition import SettingError
from lamina.settings.group_config import check_group_overrides
from lamina.settings.lists import is_of_tls
from lamina.settings.resolve import with_dynamic
from lamina.settings.topic_config import check_topic_overrides
from lamina.settings.values import BrokerSettings


class ResourceChange(NamedTuple):
    """A resource as the client named it, and what becomes of the configs that are set on it."""

    type: int
    name: str
    alter: Callable[[ConfigResource, Mapping[str, str]], Mapping[str, str]]
    names: tuple[str, ...] = ()
    """The configs that the client named."""


async def change_configs(
    metadata: Metadata, changes: Sequence[ResourceChange], clocks: Clocks, *, validate_only: bool
) -> list[KafkaError | None]:
    """Returns the error of each change, in their order."""
    errors: list[KafkaError | None] = []

    async def change(image: Image) -> Image:
        errors.clear()
        named = Counter((one.type, one.name) for one in changes)
        async for one in in_turns(changes, clocks):
            try:
                if named[one.type, one.name] > 1:
                    raise InvalidRequest(f"{one.name!r} is named more than once")
                changed = _changed(metadata, image, one)
                if _concerns_keys(metadata, one, image, changed):
                    await metadata.key_material.check(_settings_in(metadata, changed))
                image = changed
                errors.append(None)
            except KafkaError as error:
                errors.append(error.without_frames())
        return image

    if validate_only:
        await change(metadata.image)
    else:
        await metadata.change(change)
        if any(one.type == ResourceType.BROKER for one in changes):
            await metadata.key_material.refresh(metadata.settings)
    return errors


async def check_own_keys(metadata: Metadata, change: ResourceChange) -> None:
    """Raise where this broker could not use the files that a change of its settings of TLS names.

    For a change that another broker decides, which does not see these files. What else is wrong with it, that one says.
    """
    try:
        changed = _changed(metadata, metadata.image, change)
    except KafkaError:
        return
    if _concerns_keys(metadata, change, metadata.image, changed):
        await metadata.key_material.check(_settings_in(metadata, changed))


def _concerns_keys(metadata: Metadata, change: ResourceChange, old: Image, new: Image) -> bool:
    """Whether it names, sets or takes away a setting of TLS of this broker: others' files are elsewhere.

    A file that is named again is read again, though the image stays the same (S6).
    """
    if change.type != ResourceType.BROKER or change.name != str(metadata.node_id):
        return False
    resource = ConfigResource(ResourceType.BROKER, change.name)
    before, after = old.configs_of(resource), new.configs_of(resource)
    differ = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return any(is_of_tls(name) for name in (*change.names, *differ))


def _changed(metadata: Metadata, image: Image, change: ResourceChange) -> Image:
    if change.type == ResourceType.TOPIC:
        return _changed_topic(metadata, image, change)
    resource = find_resource(metadata, image, change.type, change.name)
    altered = change.alter(resource, image.configs_of(resource))
    check_configs(resource, altered)
    image = set_configs(image, resource, altered)
    if resource.type is ResourceType.BROKER:
        _check_settings(metadata, image)
    if resource.type is ResourceType.GROUP:
        try:
            check_group_overrides(metadata.settings, image.configs_of(resource))
        except SettingError as error:
            raise InvalidConfig(str(error)) from None
    return image


def _changed_topic(metadata: Metadata, image: Image, change: ResourceChange) -> Image:
    """In Kafka's order, so that each mistake gets Kafka's error: operations, name, values, and last the topic."""
    resource = ConfigResource(ResourceType.TOPIC, change.name)
    altered = change.alter(resource, image.configs_of(resource))
    if not change.name:
        raise InvalidRequest("topics have no defaults of their own: set the broker's")
    check_topic_name(change.name)
    check_topic_configs(metadata.settings, change.name, altered)
    image.topic(change.name)
    return set_configs(image, resource, altered)


def check_topic_configs(settings: BrokerSettings, topic: str, configs: Mapping[str, str]) -> None:
    """Raise Kafka's error for configs that a topic cannot have, one by one or together, on this broker."""
    check_configs(ConfigResource(ResourceType.TOPIC, topic), configs)
    try:
        check_topic_overrides(settings, configs)
    except SettingError as error:
        raise InvalidConfig(str(error)) from None


def find_resource(metadata: Metadata, image: Image, resource_type: int, name: str) -> ConfigResource:
    """A topic that is there, any group, a live broker, or all brokers; raises Kafka's error for anything else."""
    if resource_type == ResourceType.TOPIC:
        return ConfigResource(ResourceType.TOPIC, image.topic(name).name)
    if resource_type == ResourceType.GROUP:
        if not name:
            raise InvalidRequest("a group must have a name")
        return ConfigResource(ResourceType.GROUP, name)
    if resource_type != ResourceType.BROKER:
        raise InvalidRequest(f"there are no configs for resources of type {resource_type}")
    if name and not (name.isascii() and name.isdecimal()):
        raise InvalidRequest(f"a broker's id must be a whole number, not {name!r}")
    if name and int(name) not in image.brokers:
        raise InvalidRequest(f"there is no broker {name}: the cluster has {', '.join(map(str, sorted(image.brokers)))}")
    return ConfigResource(ResourceType.BROKER, str(int(name)) if name else "")


def _check_settings(metadata: Metadata, image: Image) -> None:
    """Values that are good one by one may not go together."""
    try:
        settings = _settings_in(metadata, image)
        check_threads(metadata.settings[LOG_CLEANER_THREADS], settings[LOG_CLEANER_THREADS])
    except SettingError as error:
        raise InvalidRequest(str(error)) from None


def _settings_in(metadata: Metadata, image: Image) -> BrokerSettings:
    return with_dynamic(
        metadata.settings,
        dynamic_default=image.configs_of(ConfigResource(ResourceType.BROKER, "")),
        dynamic_broker=image.configs_of(ConfigResource(ResourceType.BROKER, str(metadata.node_id))),
    )
