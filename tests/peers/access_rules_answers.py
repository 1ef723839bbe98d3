"""What answers tell, without what differs from broker to broker: to be compared."""

from __future__ import annotations

from typing import Any

from lamina.wire.fields import Entity, fields_of

_TOLD = frozenset(
    {
        "name",
        "topic",
        "group_id",
        "key",
        "error_code",
        "partition_error_code",
        "topic_config_error_code",
        "partition_index",
        "committed_offset",
        "topic_authorized_operations",
        "cluster_authorized_operations",
        "authorized_operations",
        "num_partitions",
        "replication_factor",
        "transactional_id",
        "resource_name",
        "node_id",
    }
)
_LEFT_OUT = frozenset({"brokers", "configs", "features"})


def told_by(answer: Any) -> Any:
    """Structures as sorted pairs, and lists of them in an order of their own: Kafka shuffles some."""
    schema: type[Entity] = type(answer)
    told: list[tuple[str, Any]] = []
    for field in fields_of(schema):
        value = getattr(answer, field.name)
        if field.name in _LEFT_OUT:
            continue
        if field.entity is None:
            if field.name in _TOLD:
                told.append((field.name, int(value) if isinstance(value, int) else value))
        elif field.is_array:
            told.append((field.name, None if value is None else sorted(map(told_by, value), key=repr)))
        elif value is not None:
            told.append((field.name, told_by(value)))
    return tuple(told)
