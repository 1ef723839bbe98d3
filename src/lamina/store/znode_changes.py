"""What is to be written to ZooKeeper for a change of the image, in groups that belong into one transaction each.

Owns the order. If writing ends after any group, the next controller finds a whole: topics some of whose partitions
have no state yet, or whose deletion is still to be finished. Must not write anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lamina.image.diff import Changes
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Partition, Topic
from lamina.security.quotas import QuotaEntity
from lamina.store import values
from lamina.store.interface import Create, Delete, Operation, Set
from lamina.store.znode_paths import (
    FEATURES,
    acl_path,
    config_path,
    delete_topic_path,
    deletion_path,
    made_on_path,
    parents_below_container,
    partition_path,
    partitions_path,
    quota_path,
    state_path,
    topic_path,
)
from lamina.store.znode_security import dump_rules, user_configs
from lamina.store.znode_values import NEW_EPOCH, dump_configs, dump_made_on, dump_state, dump_topic

Group = list[Operation]


@dataclass(slots=True)
class ZnodeChanges:
    changes: Changes
    new: Image
    versions: dict[str, int]
    """The version of every entry but the states of partitions, whose versions the image has; kept up to date."""
    controller_epoch: int

    def groups(self) -> Iterator[Group]:
        for topic in self.changes.topics_deleted:
            yield from self._delete(topic)
        for topic in self.changes.topics_created:
            yield from self._create(topic)
        for topic in self.changes.topics_being_deleted:
            yield self._put(delete_topic_path(topic.name), b"")
        yield from self._change_partitions()
        yield from self._rest()

    # Topics

    def _delete(self, topic: Topic) -> Iterator[Group]:
        """The partitions first, for an entry goes after all below it; the topic with the record of its deletion."""
        for index, partition in enumerate(topic.partitions):
            state: Group = []
            if partition.partition_epoch != NEW_EPOCH:
                state = [Delete(state_path(topic.name, index), partition.partition_epoch)]
            if group := state + self._remove(partition_path(topic.name, index)):
                yield group
        group = self._remove(partitions_path(topic.name)) + self._remove(made_on_path(topic.name))
        if topic.name not in self.new.topics:
            group += self._remove(config_path(ConfigResource(ResourceType.TOPIC, topic.name)))
        group += self._remove(delete_topic_path(topic.name)) + self._remove(topic_path(topic.name))
        yield group + self._deletion(topic.id)

    def _create(self, topic: Topic) -> Iterator[Group]:
        """The topic with its configs; each partition may follow later."""
        group = self._put(topic_path(topic.name), dump_topic(topic)) + self._put(partitions_path(topic.name), b"")
        group += self._config(ConfigResource(ResourceType.TOPIC, topic.name))
        if topic.is_being_deleted:
            group += self._put(delete_topic_path(topic.name), b"")
        yield group
        yield from self._made_on(topic)
        for index, partition in enumerate(topic.partitions):
            yield from self._state(topic, index, None, partition)

    def _deletion(self, topic_id: bytes) -> Group:
        if topic_id not in self.changes.deletions:
            return []
        brokers = self.changes.deletions[topic_id]
        path = deletion_path(topic_id)
        return self._remove(path) if brokers is None else self._put(path, values.dump(brokers))

    # Partitions

    def _change_partitions(self) -> Iterator[Group]:
        """States before assignments: replicas that go are not in sync any more when they are assigned no more (R51).

        First states after them: who is in sync then is assigned already.
        """
        reassigned = {each.topic.name: each.topic for each in self.changes.partitions_added}
        made: dict[str, Topic] = {}
        first_states: list[Iterator[Group]] = []
        for changed in self.changes.partitions_changed:
            if changed.is_assignment_changed:
                reassigned[changed.topic.name] = changed.topic
            if changed.old.made_on != changed.new.made_on:
                made[changed.topic.name] = changed.topic
            state = self._state(changed.topic, changed.index, changed.old, changed.new)
            if changed.old.partition_epoch == NEW_EPOCH:
                first_states.append(state)
            else:
                yield from state
        for topic in reassigned.values():
            yield self._put(topic_path(topic.name), dump_topic(topic))
        for state in first_states:
            yield from state
        for added in self.changes.partitions_added:
            for index in added.indexes:
                yield from self._state(added.topic, index, None, added.topic.partitions[index])
        for topic in made.values():
            yield from self._made_on(topic)

    def _state(self, topic: Topic, index: int, old: Partition | None, new: Partition) -> Iterator[Group]:
        """As many writes as the partition epoch grew by: it is the version."""
        epoch = NEW_EPOCH if old is None else old.partition_epoch
        if new.partition_epoch < epoch:
            raise ValueError(f"the epoch of {topic.name}-{index} goes back from {epoch} to {new.partition_epoch}")
        if new.partition_epoch == epoch:
            return
        path, value, group = state_path(topic.name, index), dump_state(new, self.controller_epoch), Group()
        if epoch == NEW_EPOCH:
            if partition_path(topic.name, index) not in self.versions:
                group += self._put(partition_path(topic.name, index), b"")
            group.append(Create(path, value))
            epoch = 0
        yield group + [Set(path, value, version) for version in range(epoch, new.partition_epoch)]

    def _made_on(self, topic: Topic) -> Iterator[Group]:
        if any(partition.made_on for partition in topic.partitions):
            yield self._put(made_on_path(topic.name), dump_made_on(topic))

    # Everything else

    def _rest(self) -> Iterator[Group]:
        created = {topic.name for topic in self.changes.topics_created}
        deleted = {topic.name for topic in self.changes.topics_deleted}
        for resource in self.changes.configs:
            if resource.type is not ResourceType.TOPIC or resource.name not in created | deleted:
                yield self._config(resource)
        for topic_id in self.changes.deletions.keys() - {topic.id for topic in self.changes.topics_deleted}:
            yield self._deletion(topic_id)
        if self.changes.features is not None:
            yield self._put(FEATURES, values.dump_features(self.changes.features))
        yield from self._security()

    def _security(self) -> Iterator[Group]:
        for pattern, rules in self.changes.acls.items():
            path = acl_path(pattern)
            yield self._put_below(path, dump_rules(rules)) if rules else self._remove(path)
        entities = dict.fromkeys(self.changes.quotas)
        entities |= dict.fromkeys((("user", user),) for user in self.changes.scram_credentials)
        for entity in entities:
            yield self._entity(entity)

    def _entity(self, entity: QuotaEntity) -> Group:
        """Its quotas, and a user's credentials. An entry that others are below stays, and is empty."""
        (kind, name), *others = entity
        credentials = self.new.scram_credentials.get(name, {}) if kind == "user" and name and not others else {}
        configs = user_configs(self.new.quotas.get(entity, {}), credentials)
        path = quota_path(entity)
        if configs or f"{path}/clients" in self.versions:
            return self._put_below(path, dump_configs(configs))
        return self._remove(path)

    def _config(self, resource: ConfigResource) -> Group:
        configs, path = self.new.configs_of(resource), config_path(resource)
        return self._put(path, dump_configs(configs)) if configs else self._remove(path)

    def _put(self, path: str, value: bytes) -> Group:
        version = self.versions.get(path)
        if version is None:
            self.versions[path] = 0
            return [Create(path, value)]
        self.versions[path] = version + 1
        return [Set(path, value, version)]

    def _put_below(self, path: str, value: bytes) -> Group:
        """With empty entries for those above it that are not there."""
        group: Group = []
        for above in parents_below_container(path):
            if above not in self.versions:
                group += self._put(above, b"")
        return group + self._put(path, value)

    def _remove(self, path: str) -> Group:
        version = self.versions.pop(path, None)
        return [] if version is None else [Delete(path, version)]
