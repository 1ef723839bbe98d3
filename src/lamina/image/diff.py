"""What differs between two images.

Owns the list that a publisher acts on and a store writes: everything that is needed to get from the old image
to the new one. A name whose topic has another id is a topic deleted and another one created. Must not know what
anybody does about a change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lamina.image.image import Broker, ConfigResource, Features, Image
from lamina.image.topic import Partition, Topic
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism

AccessRules = Mapping[ResourcePattern, frozenset[AccessRule]]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    topic: Topic
    indexes: range


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    topic: Topic
    index: int
    old: Partition
    new: Partition

    @property
    def is_leader_moved(self) -> bool:
        """Another leader, or the same one in another epoch."""
        return (self.old.leader, self.old.leader_epoch) != (self.new.leader, self.new.leader_epoch)

    @property
    def is_assignment_changed(self) -> bool:
        """Other replicas, or others that are added or removed."""
        return self.old.assignment != self.new.assignment


@dataclass(frozen=True, slots=True)
class Changes:
    """Topics are as the new image has them, except the deleted ones."""

    topics_deleted: tuple[Topic, ...] = ()
    topics_created: tuple[Topic, ...] = ()
    topics_being_deleted: tuple[Topic, ...] = ()
    partitions_added: tuple[PartitionsAdded, ...] = ()
    partitions_changed: tuple[PartitionChanged, ...] = ()
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    """What is now set on each resource where that changed; nothing at all may be set."""
    brokers: Mapping[int, Broker | None] = field(default_factory=dict)
    """Each broker that came, changed or, with ``None``, went."""
    controller_id: int | None = None
    controller_epoch: int | None = None
    deletions: Mapping[bytes, tuple[int, ...] | None] = field(default_factory=dict)
    """Deleted topics by id, with the brokers that may still hold them; ``None`` where none does any more."""
    features: Features | None = None
    acls: AccessRules = field(default_factory=dict)
    """The rules that each pattern has now where they changed; it may have none."""
    scram_credentials: Mapping[str, Mapping[ScramMechanism, ScramCredential]] = field(default_factory=dict)
    """The credentials that each user has now where they changed; there may be none."""
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    """The quotas that each entity has now where they changed; there may be none."""

    def __bool__(self) -> bool:
        return self != _NO_CHANGES

    @property
    def topics_gone(self) -> tuple[Topic, ...]:
        """Topics that clients knew and know no more; one that was being deleted before has gone before."""
        return self.topics_being_deleted + tuple(one for one in self.topics_deleted if not one.is_being_deleted)

    @property
    def leaders_moved(self) -> tuple[PartitionChanged, ...]:
        return tuple(change for change in self.partitions_changed if change.is_leader_moved)


_NO_CHANGES = Changes()


def diff(old: Image, new: Image) -> Changes:
    deleted: list[Topic] = []
    created: list[Topic] = []
    being_deleted: list[Topic] = []
    added: list[PartitionsAdded] = []
    changed: list[PartitionChanged] = []
    for before, after in _changed(old.topics, new.topics).values():
        if before is None or after is None or before.id != after.id:
            deleted += [] if before is None else [before]
            created += [] if after is None else [after]
            continue
        if after.is_being_deleted and not before.is_being_deleted:
            being_deleted.append(after)
        if len(after.partitions) > len(before.partitions):
            added.append(PartitionsAdded(after, range(len(before.partitions), len(after.partitions))))
        # Not strict: the added ones have no counterpart.
        pairs = enumerate(zip(before.partitions, after.partitions, strict=False))
        changed += [PartitionChanged(after, index, a, b) for index, (a, b) in pairs if a is not b and a != b]
    return Changes(
        topics_deleted=tuple(deleted),
        topics_created=tuple(created),
        topics_being_deleted=tuple(being_deleted),
        partitions_added=tuple(added),
        partitions_changed=tuple(changed),
        configs={resource: after or {} for resource, (_, after) in _changed(old.configs, new.configs).items()},
        brokers={broker_id: after for broker_id, (_, after) in _changed(old.brokers, new.brokers).items()},
        controller_id=None if old.controller_id == new.controller_id else new.controller_id,
        controller_epoch=None if old.controller_epoch == new.controller_epoch else new.controller_epoch,
        deletions={topic_id: after for topic_id, (_, after) in _changed(old.deletions, new.deletions).items()},
        features=None if old.features == new.features else new.features,
        acls=changed_acls(old.acls, new.acls),
        scram_credentials={
            user: after or {} for user, (_, after) in _changed(old.scram_credentials, new.scram_credentials).items()
        },
        quotas={entity: after or {} for entity, (_, after) in _changed(old.quotas, new.quotas).items()},
    )


def changed_acls(old: AccessRules, new: AccessRules) -> dict[ResourcePattern, frozenset[AccessRule]]:
    """The rules that each pattern has now where they changed; it may have none."""
    return {pattern: after or frozenset() for pattern, (_, after) in _changed(old, new).items()}


def _changed(old: Mapping[K, V], new: Mapping[K, V]) -> dict[K, tuple[V | None, V | None]]:
    """What is not equal in both, before and after; ``None`` where it is absent."""
    if old is new:
        return {}
    changed: dict[K, tuple[V | None, V | None]] = {key: (value, None) for key, value in old.items() if key not in new}
    for key, value in new.items():
        before = old.get(key)
        # Untouched parts are shared between images, so most comparisons end at identity.
        if before is not value and before != value:
            changed[key] = (before, value)
    return changed
