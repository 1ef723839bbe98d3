"""Reading and changing the settings of a resource, through librdkafka where it can.

Must not know how any of it is shown.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lamina.cli.configs.resource import Resource
from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry


def entries_of(cluster: Cluster, resource: Resource, attempts: Attempts) -> "dict[str, ConfigEntry] | None":
    """Every setting of the resource, by name in order; None if the attempt failed."""
    from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource

    if resource.is_every_broker:
        from lamina.client.all_brokers import describe_defaults

        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return {
            one.name: ConfigEntry(
                one.name, one.value, source, is_read_only=one.is_read_only, is_sensitive=one.is_sensitive
            )
            for one in sorted(describe_defaults(cluster), key=lambda one: one.name)
        }
    _check_broker(cluster, resource)
    futures = cluster.admin().describe_configs([ConfigResource(resource.type, resource.name)])
    for _, entries in attempts.answers((str(resource), future) for future in futures.values()):
        return dict(sorted(entries.items()))
    return None


def check_names(
    resource: Resource, names: Iterable[str], known: "Mapping[str, ConfigEntry]", attempts: Attempts
) -> None:
    """Of all brokers only what is set can be known."""
    for name in names:
        if name in known:
            continue
        if resource.is_every_broker:
            text = f"{name} is not set; `lamina configs get --broker ID` shows the value in effect"
        else:
            near = difflib.get_close_matches(name[:100], known, n=1)
            advice = f"did you mean {near[0]}?" if near else "`lamina configs get --all` shows every name"
            text = f"there is no setting {name!r}; {advice}"
        attempts.fail(str(resource), ClientError(text))


def alter(cluster: Cluster, resource: Resource, wanted: Mapping[str, str | None], attempts: Attempts) -> bool:
    """All or, if one is refused, none; None takes a setting back. Whether it was done."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    if resource.is_every_broker:
        from lamina.client.all_brokers import alter_defaults

        alter_defaults(cluster, wanted)
        return True
    _check_broker(cluster, resource)
    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    changes = [
        ConfigEntry(name, value, incremental_operation=delete if value is None else set_)
        for name, value in wanted.items()
    ]
    changed = ConfigResource(resource.type, resource.name, incremental_configs=changes)
    futures = cluster.admin().incremental_alter_configs([changed])
    return any(True for _ in attempts.answers((str(resource), future) for future in futures.values()))


def _check_broker(cluster: Cluster, resource: Resource) -> None:
    """librdkafka waits a minute for an unknown broker."""
    if resource.type != "broker":
        return
    nodes = cluster.answer(cluster.admin().describe_cluster()).nodes
    if int(resource.name) not in [node.id for node in nodes]:
        raise ClientError(f"there is no broker {resource.name}; `lamina brokers` shows all brokers")
