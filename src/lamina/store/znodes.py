"""The metadata image in ZooKeeper: read by a new controller, then written by it change by change.

Owns reading, and that every transaction checks that the tenure goes on. Who is alive is not here but in membership.py.
The version of a partition's state is its partition epoch. A change may take several transactions; znode_changes.py says
in which order. Must not decide what changes.
"""

from collections.abc import Iterable
from dataclasses import replace

from lamina.image.diff import Changes, diff
from lamina.image.image import ConfigResource, Features, Image, ResourceType
from lamina.image.topic import Topic
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.store import values, znode_security, znode_values
from lamina.store.cluster_identity import stored_cluster_id
from lamina.store.entries import create_path, parsed
from lamina.store.interface import (
    LARGEST_BYTES,
    TRANSACTION_BYTES,
    Check,
    Entry,
    Operation,
    Store,
    StoreConflict,
    StoreError,
    TooLarge,
    size_bytes,
)
from lamina.store.membership import CONTROLLER_EPOCH, Tenure
from lamina.store.znode_changes import Group, ZnodeChanges
from lamina.store.znode_paths import (
    CLIENTS,
    CONFIGS,
    CONTAINERS,
    DELETIONS,
    EXTENDED_ACLS,
    FEATURES,
    IPS,
    LITERAL_ACLS,
    TOPICS,
    USERS,
    acl_pattern,
    config_resource,
    delete_topic_path,
    made_on_path,
    partition_path,
    partitions_path,
    quota_entity,
    state_path,
    topic_path,
)

Quotas = dict[QuotaEntity, dict[str, float]]
ScramCredentials = dict[str, dict[ScramMechanism, ScramCredential]]


class ControllerMoved(StoreError):
    """Another controller is active: nothing of the transaction happened, and nothing of this tenure will."""


class ZnodeMetadata:
    """For one tenure after the other. Not for several threads at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: dict[str, int] = {}
        """Of every entry that was read or written, but the states of partitions."""
        self._is_loaded = False

    def load(self) -> Image:
        """The image, without brokers and without a controller: who is alive is told by the membership."""
        cluster_id = stored_cluster_id(self._store)
        if cluster_id is None:
            raise StoreError(
                "there is no cluster at this place in ZooKeeper: correct zookeeper.connect, or the chroot at its end"
            )
        for path in CONTAINERS:
            create_path(self._store, path)
        self._versions = {}
        topics = self._load_topics()
        quotas, credentials = self._load_quotas_and_credentials()
        image = Image(
            cluster_id,
            controller_epoch=self._load_controller_epoch(),
            topics=topics,
            topic_names={topic.id: topic.name for topic in topics.values()},
            configs=self._load_configs(topics),
            features=self._load_features(),
            deletions=self._load_deletions(),
            acls=self._load_acls(),
            scram_credentials=credentials,
            quotas=quotas,
        )
        self._is_loaded = True
        return image

    def write(self, old: Image, new: Image, tenure: Tenure) -> Changes:
        """Write what differs from the image that was read or written last.

        Raises :class:`TooLarge` before anything is written, and :class:`ControllerMoved` when another controller is
        active. After any other error the image in the store may be neither the old one nor the new one: it has to be
        loaded again before anything is written.
        """
        if not self._is_loaded:
            raise StoreError("the metadata has to be loaded again before it is written")
        changes, versions = diff(old, new), dict(self._versions)
        groups = list(ZnodeChanges(changes, new, versions, tenure.controller_epoch).groups())
        _check_sizes(groups)
        self._is_loaded, self._versions = False, versions
        for operations in _transactions(groups):
            self._transact(operations, tenure)
        self._is_loaded = True
        return changes

    def _transact(self, operations: list[Operation], tenure: Tenure) -> None:
        try:
            self._store.transact([Check(CONTROLLER_EPOCH, tenure.epoch_version), *operations])
        except StoreConflict as conflict:
            if conflict.path == CONTROLLER_EPOCH:
                raise ControllerMoved(f"the tenure of controller epoch {tenure.controller_epoch} is over") from None
            raise

    # Reading

    def _load_topics(self) -> dict[str, Topic]:
        names = self._store.children(TOPICS)
        found = self._get_many(map(topic_path, names))
        topics = [parsed(path, znode_values.load_topic, path.rpartition("/")[2], entry.value) for path, entry in found]
        self._get_many(partitions_path(topic.name) for topic in topics)
        being_deleted = dict(self._get_many(delete_topic_path(topic.name) for topic in topics))
        made_on = dict(self._get_many(made_on_path(topic.name) for topic in topics))
        loaded = {}
        for topic in self._with_states(topics):
            path = made_on_path(topic.name)
            if path in made_on:
                topic = parsed(path, znode_values.with_made_on, topic, made_on[path].value)
            loaded[topic.name] = replace(topic, is_being_deleted=delete_topic_path(topic.name) in being_deleted)
        return loaded

    def _with_states(self, topics: list[Topic]) -> Iterable[Topic]:
        every = [(topic.name, index) for topic in topics for index in range(len(topic.partitions))]
        states = self._store.get_many(state_path(*partition) for partition in every)
        # Whoever made a partition may have been interrupted before its state; with a state there is both.
        self._versions |= {partition_path(*each): 0 for each in every if state_path(*each) in states}
        self._get_many(partition_path(*each) for each in every if state_path(*each) not in states)
        for topic in topics:
            partitions = list(topic.partitions)
            for index, partition in enumerate(partitions):
                path = state_path(topic.name, index)
                if (entry := states.get(path)) is not None:
                    partitions[index] = parsed(path, znode_values.with_state, partition, entry.value, entry.version)
            yield replace(topic, partitions=tuple(partitions))

    def _load_configs(self, topics: dict[str, Topic]) -> dict[ConfigResource, dict[str, str]]:
        """What was left of a topic that is gone belongs to nobody, and goes when a topic of that name is created."""
        loaded = {}
        for type_, above in CONFIGS.items():
            for path, entry in self._below(above):
                resource = parsed(path, config_resource, type_, path)
                configs = parsed(path, znode_values.load_configs, entry.value)
                if configs and (type_ is not ResourceType.TOPIC or resource.name in topics):
                    loaded[resource] = configs
        return loaded

    def _load_deletions(self) -> dict[bytes, tuple[int, ...]]:
        return {
            parsed(path, znode_values.parse_id, path.rpartition("/")[2]): parsed(path, _load_brokers, entry.value)
            for path, entry in self._below(DELETIONS)
        }

    def _load_acls(self) -> dict[ResourcePattern, frozenset[AccessRule]]:
        loaded = {}
        for above in (LITERAL_ACLS, EXTENDED_ACLS):
            for path, entry in self._below(above):
                pattern = parsed(path, acl_pattern, path)
                if pattern is not None and (rules := parsed(path, znode_security.load_rules, entry.value)):
                    loaded[pattern] = rules
        return loaded

    def _load_quotas_and_credentials(self) -> tuple[Quotas, ScramCredentials]:
        """Kafka keeps both of a user in one entry."""
        quotas: Quotas = {}
        credentials: ScramCredentials = {}
        for above in (USERS, CLIENTS, IPS):
            for path, entry in self._below(above):
                entity = parsed(path, quota_entity, path)
                if entity is None or not entry.value:
                    continue
                configs = parsed(path, znode_values.load_configs, entry.value)
                if found := parsed(path, znode_security.quotas_in, configs):
                    quotas[entity] = found
                (kind, user), *others = entity
                if kind != "user" or user is None or others:
                    continue
                if keys := parsed(path, znode_security.credentials_in, configs):
                    credentials[user] = keys
        return quotas, credentials

    def features(self) -> Features:
        """Alone; nothing is to be written by them."""
        found = self._store.get(FEATURES)
        return Features() if found is None else parsed(FEATURES, values.load_features, found.value)

    def _load_features(self) -> Features:
        found = dict(self._get_many([FEATURES]))
        return parsed(FEATURES, values.load_features, found[FEATURES].value) if found else Features()

    def _load_controller_epoch(self) -> int:
        found = self._store.get(CONTROLLER_EPOCH)
        return 0 if found is None else parsed(CONTROLLER_EPOCH, values.load_number, found.value)

    def _get_many(self, paths: Iterable[str]) -> list[tuple[str, Entry]]:
        return self._remember(self._store.get_many(paths))

    def _below(self, path: str) -> list[tuple[str, Entry]]:
        return self._remember(self._store.below(path))

    def _remember(self, found: dict[str, Entry]) -> list[tuple[str, Entry]]:
        self._versions |= {path: entry.version for path, entry in found.items()}
        return list(found.items())


def _check_sizes(groups: Iterable[Group]) -> None:
    for group in groups:
        size = sum(map(size_bytes, [Check(CONTROLLER_EPOCH, 0), *group]))
        if size > LARGEST_BYTES:
            largest = max(group, key=size_bytes)
            raise TooLarge(f"{largest.path} would take {size} bytes in ZooKeeper, and {LARGEST_BYTES} are the most")


def _transactions(groups: Iterable[Group]) -> Iterable[list[Operation]]:
    """As many groups together as one transaction takes."""
    gathered: list[Operation] = []
    gathered_bytes = 0
    for group in groups:
        group_bytes = sum(map(size_bytes, group))
        if gathered and gathered_bytes + group_bytes > TRANSACTION_BYTES:
            yield gathered
            gathered, gathered_bytes = [], 0
        gathered += group
        gathered_bytes += group_bytes
    if gathered:
        yield gathered


def _load_brokers(data: bytes) -> tuple[int, ...]:
    return values.numbers(values.load(data))
