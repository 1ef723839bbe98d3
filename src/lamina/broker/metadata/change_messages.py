"""Changes of the image as the controller tells them: one line of JSON for each.

Owns the form. A line says what differs from the image before it; a broker that has that image gets the next one by
``patched``. The first line that a broker gets is the whole image: what differs from nothing. Brokers of one cluster
may run different versions, so what is not known is passed over. Must not know how lines travel.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lamina.image.changes import set_acls, set_quotas, set_scram_credentials
from lamina.image.diff import Changes
from lamina.image.image import Broker, ConfigResource, Features, Image, ResourceType
from lamina.image.topic import Partition, Topic
from lamina.settings.listeners import Listener
from lamina.store import security_values
from lamina.store.values import dump, load
from lamina.topic_partition import TopicPartition


class ChangeMessageError(ValueError):
    """A line that does not fit the image it came for; the sentence says why."""


def encode_changes(changes: Changes) -> bytes:
    message: dict[str, Any] = {
        "deleted": [topic.name for topic in changes.topics_deleted],
        "created": [_dump_topic(topic) for topic in changes.topics_created],
        "being_deleted": [topic.name for topic in changes.topics_being_deleted],
        "partitions": [
            *([c.topic.name, c.index, _dump_partition(c.new)] for c in changes.partitions_changed),
            *(
                [added.topic.name, index, _dump_partition(added.topic.partitions[index])]
                for added in changes.partitions_added
                for index in added.indexes
            ),
        ],
        "configs": [[int(one.type), one.name, dict(configs)] for one, configs in changes.configs.items()],
        "brokers": [[broker_id, _dump_broker(broker)] for broker_id, broker in changes.brokers.items()],
        "deletions": [[topic_id.hex(), brokers] for topic_id, brokers in changes.deletions.items()],
        "controller": changes.controller_id,
        "controller_epoch": changes.controller_epoch,
        "features": None if changes.features is None else [dict(changes.features.levels), changes.features.epoch],
        "acls": [
            [pattern.type, pattern.name, pattern.pattern, security_values.rules_as_json(rules)]
            for pattern, rules in changes.acls.items()
        ],
        "scram": [
            [user, security_values.credentials_as_json(credentials)]
            for user, credentials in changes.scram_credentials.items()
        ],
        "quotas": [[entity, dict(quotas)] for entity, quotas in changes.quotas.items()],
    }
    return dump({name: value for name, value in message.items() if value not in (None, [])})


def patched(image: Image, line: bytes) -> Image:
    """The image after a change. Raises :class:`ChangeMessageError` for a line that cannot be followed."""
    try:
        return _patched(image, load(line))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ChangeMessageError(f"a change of the metadata cannot be read: {error!r}") from error


def _patched(image: Image, message: dict[str, Any]) -> Image:
    topics = dict(image.topics)
    topic_names = dict(image.topic_names)
    for name in message.get("deleted", ()):
        del topic_names[topics.pop(name).id]
    for created in message.get("created", ()):
        topic = _load_topic(created)
        topics[topic.name] = topic
        topic_names[topic.id] = topic.name
    for name in message.get("being_deleted", ()):
        topics[name] = replace(topics[name], is_being_deleted=True)
    for name, states in _by_topic(message.get("partitions", ())).items():
        topics[name] = _with_partitions(topics[name], states)
    configs = dict(image.configs)
    for kind, name, values in message.get("configs", ()):
        resource = ConfigResource(ResourceType(kind), name)
        configs.pop(resource, None)
        if values:
            configs[resource] = values
    brokers = dict(image.brokers)
    for broker_id, broker in message.get("brokers", ()):
        brokers.pop(broker_id, None)
        if broker is not None:
            brokers[broker_id] = _load_broker(broker_id, broker)
    deletions = dict(image.deletions)
    for topic_id, away in message.get("deletions", ()):
        deletions.pop(bytes.fromhex(topic_id), None)
        if away is not None:
            deletions[bytes.fromhex(topic_id)] = tuple(away)
    features = message.get("features")
    after = replace(
        image,
        topics=topics,
        topic_names=topic_names,
        configs=configs,
        brokers=brokers,
        deletions=deletions,
        controller_id=message.get("controller", image.controller_id),
        controller_epoch=message.get("controller_epoch", image.controller_epoch),
        features=image.features if features is None else Features(*features),
    )
    return _with_security(after, message)


def _with_security(image: Image, message: dict[str, Any]) -> Image:
    if "acls" in message:
        image = set_acls(
            image,
            {
                security_values.pattern_from_json(*pattern): security_values.rules_from_json(rules)
                for *pattern, rules in message["acls"]
            },
        )
    if "scram" in message:
        users = {user: security_values.credentials_from_json(credentials) for user, credentials in message["scram"]}
        image = set_scram_credentials(image, users)
    if "quotas" in message:
        quotas = {
            security_values.entity_from_json(entity): security_values.quotas_from_json(values)
            for entity, values in message["quotas"]
        }
        image = set_quotas(image, quotas)
    return image


def _by_topic(partitions: Iterable[Any]) -> dict[str, dict[int, Partition]]:
    found: defaultdict[str, dict[int, Partition]] = defaultdict(dict)
    for name, index, state in partitions:
        found[name][index] = _load_partition(state)
    return found


def _with_partitions(topic: Topic, states: dict[int, Partition]) -> Topic:
    """With some replaced, and others added behind the last."""
    every = list(topic.partitions)
    for index in sorted(states):
        if index > len(every):
            raise ValueError(f"{topic.name} has {len(every)} partitions, number {index} was added")
        every[index : index + 1] = [states[index]]
    return replace(topic, partitions=tuple(every))


def _dump_topic(topic: Topic) -> list[Any]:
    partitions = [_dump_partition(partition) for partition in topic.partitions]
    return [topic.name, topic.id.hex(), topic.is_being_deleted, partitions]


def _load_topic(value: list[Any]) -> Topic:
    name, topic_id, is_being_deleted, partitions = value[:4]
    return Topic(name, bytes.fromhex(topic_id), tuple(map(_load_partition, partitions)), is_being_deleted)


def _dump_partition(partition: Partition) -> list[Any]:
    state = [
        partition.replicas,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.made_on,
        partition.partition_epoch,
        partition.is_recovering,
    ]
    return [*state, partition.adding, partition.removing] if partition.is_reassigning else state


def _load_partition(value: list[Any]) -> Partition:
    replicas, leader, leader_epoch, isr, made_on, partition_epoch, is_recovering = value[:7]
    adding, removing = value[7:9] if len(value) > 7 else ((), ())
    return Partition(
        tuple(replicas),
        leader,
        leader_epoch,
        tuple(isr),
        tuple(made_on),
        partition_epoch,
        is_recovering,
        tuple(adding),
        tuple(removing),
    )


def _dump_broker(broker: Broker | None) -> list[Any] | None:
    if broker is None:
        return None
    endpoints = [[one.name, one.protocol, one.host, one.port] for one in broker.endpoints.values()]
    features = {name: [levels[0], levels[-1]] for name, levels in broker.features.items()}
    return [endpoints, broker.rack, broker.epoch, broker.is_draining, sorted(broker.offline), features]


def _load_broker(broker_id: int, value: list[Any]) -> Broker:
    endpoints, rack, epoch, is_draining, offline = value[:5]
    features = value[5] if len(value) > 5 else {}
    listeners = [Listener(*endpoint) for endpoint in endpoints]
    return Broker(
        broker_id,
        {listener.name: listener for listener in listeners},
        rack,
        epoch,
        is_draining,
        frozenset[TopicPartition]((name, index) for name, index in offline),
        {name: range(lowest, highest + 1) for name, (lowest, highest) in features.items()},
    )
