"""The values of Kafka's znodes for topics, partitions and configs, and of Lamina's own beside them.

Owns those forms of JSON (zookeeper.md 6.1). What is read is believed only in the types and sizes that are written:
anything else raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError``. Must not know paths.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from lamina.image.topic import NO_LEADER, Partition, Topic
from lamina.store import values

_RECOVERING = 1
NEW_EPOCH = -1
"""The leader epoch and the partition epoch of a partition that is assigned and has no state yet."""


# A topic


def dump_topic(topic: Topic) -> bytes:
    return values.dump(
        {
            "version": 3,
            "topic_id": format_id(topic.id),
            "partitions": {str(index): each.replicas for index, each in enumerate(topic.partitions)},
            "adding_replicas": _by_index(each.adding for each in topic.partitions),
            "removing_replicas": _by_index(each.removing for each in topic.partitions),
        }
    )


def _by_index(replicas: Iterable[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Of those partitions that have any."""
    return {str(index): some for index, some in enumerate(replicas) if some}


def load_topic(name: str, data: bytes) -> Topic:
    """A topic whose partitions are all new."""
    value = values.load(data)
    assigned = _numbers_by_index(value["partitions"])
    adding = _numbers_by_index(value.get("adding_replicas", {}))
    removing = _numbers_by_index(value.get("removing_replicas", {}))
    if sorted(assigned) != list(range(len(assigned))):
        raise ValueError("its partitions are not numbered from 0 on")
    if not all(assigned.values()):
        raise ValueError("a partition has no replicas")
    partitions = (
        Partition(
            assigned[index],
            NO_LEADER,
            NEW_EPOCH,
            isr=(),
            partition_epoch=NEW_EPOCH,
            adding=adding.get(index, ()),
            removing=removing.get(index, ()),
        )
        for index in range(len(assigned))
    )
    return Topic(name, parse_id(value["topic_id"]), tuple(partitions))


def _numbers_by_index(value: Mapping[str, Any]) -> dict[int, tuple[int, ...]]:
    return {int(index): values.numbers(replicas) for index, replicas in value.items()}


# The state of a partition


def dump_state(partition: Partition, controller_epoch: int) -> bytes:
    state = {
        "version": 1,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "controller_epoch": controller_epoch,
        "isr": partition.isr,
    }
    return values.dump({**state, "leader_recovery_state": _RECOVERING} if partition.is_recovering else state)


def with_state(partition: Partition, data: bytes, version: int) -> Partition:
    """The partition epoch is the version of the entry."""
    value = values.load(data)
    return replace(
        partition,
        leader=values.number(value["leader"]),
        leader_epoch=values.number(value["leader_epoch"]),
        isr=values.numbers(value["isr"]),
        partition_epoch=version,
        is_recovering=value.get("leader_recovery_state", 0) == _RECOVERING,
    )


# Where a topic's directories were made


def dump_made_on(topic: Topic) -> bytes:
    return values.dump({"topic_id": format_id(topic.id), "made_on": [each.made_on for each in topic.partitions]})


def with_made_on(topic: Topic, data: bytes) -> Topic:
    """Of another topic of this name nothing is taken. Partitions that were added later have none."""
    value = values.load(data)
    if parse_id(value["topic_id"]) != topic.id:
        return topic
    made_on = [values.numbers(brokers) for brokers in value["made_on"]]
    made_on += [()] * (len(topic.partitions) - len(made_on))
    pairs = zip(topic.partitions, made_on, strict=True)
    return replace(topic, partitions=tuple(replace(partition, made_on=brokers) for partition, brokers in pairs))


# Configs


def dump_configs(configs: Mapping[str, str]) -> bytes:
    return values.dump({"version": 1, "config": dict(configs)})


def load_configs(data: bytes) -> dict[str, str]:
    return {name: values.text(value) for name, value in values.load(data)["config"].items()}


# Names and ids


def format_name(name: str) -> str:
    """Any name as one part of a path; a topic's stays as it is."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def parse_name(part: str) -> str:
    return unquote(part, errors="strict")


def format_id(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def parse_id(text: str) -> bytes:
    try:
        raw = urlsafe_b64decode(values.text(text) + "==")
    except binascii.Error:
        raw = b""
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not an id of 22 base64 characters")
    return raw
