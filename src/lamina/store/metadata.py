"""The metadata image in a cluster store: read at start, then written change by change.

Owns the paths, the version of the format, and that the image in memory is never ahead of the store. Must not
decide what changes.
"""

from collections.abc import Iterator, Mapping

from lamina.image.diff import Changes, diff
from lamina.image.image import NO_CONTROLLER, ConfigResource, Features, Image, ResourceType
from lamina.image.topic import Topic
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.store import security_values, values
from lamina.store.entries import parsed
from lamina.store.interface import Create, Delete, Operation, Set, Store, StoreError

FORMAT_VERSION = 1

FORMAT = "/format"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
FEATURES = "/features"
BROKERS = "/brokers"
TOPICS = "/topics"
PARTITIONS = "/partitions"
CONFIGS = {
    ResourceType.TOPIC: "/configs/topics",
    ResourceType.BROKER: "/configs/brokers",
    ResourceType.GROUP: "/configs/groups",
}
ACLS = "/acls"
"""Below it a type and a kind of pattern, by their numbers, and a name that may have slashes."""
SCRAM_CREDENTIALS = "/scram"
QUOTAS = "/quotas"
"""Below it an entity as JSON."""
ALL_BROKERS = "<default>"
"""Stands for the empty name, which no path can end with; Kafka writes the same."""

_EPHEMERAL = (BROKERS, CONTROLLER)


class MetadataStore:
    def __init__(self, store: Store, new_cluster_id: str) -> None:
        """Read the image; a store that is new is given the cluster id.

        Raises :class:`StoreError` for a newer format or a value that cannot be read.
        """
        self._store = store
        self._versions: dict[str, int] = {}
        """The version of each entry that the image was read from or written to."""
        self._check_format(new_cluster_id)
        self.image = self._load()

    def save(self, image: Image) -> Changes:
        """Make an image the current one, for callers that own the store alone. Returns what changed.

        When it raises, the image stays as it was, and so does the store unless it failed while committing.
        """
        changes = self.write(self.image, image)
        self.image = image
        return changes

    def write(self, old: Image, new: Image) -> Changes:
        """Write what differs, in one transaction. May run on any thread, one at a time: it changes no image."""
        changes = diff(old, new)
        operations = list(self._operations(changes, new))
        if operations:
            self._store.transact(operations)
        for operation in operations:
            match operation:
                case Create(path):
                    self._versions[path] = 0
                case Set(path):
                    self._versions[path] += 1
                case Delete(path):
                    del self._versions[path]
        return changes

    # Writing

    def _operations(self, changes: Changes, image: Image) -> Iterator[Operation]:
        written = {topic.name: topic for topic in changes.topics_created + changes.topics_being_deleted}
        written |= {added.topic.name: added.topic for added in changes.partitions_added}
        moved = {changed.topic.name: changed.topic for changed in changes.partitions_changed}
        reassigned = (changed.topic for changed in changes.partitions_changed if changed.is_assignment_changed)
        written |= {topic.name: topic for topic in reassigned}
        for topic in written.values():
            yield self._put(f"{TOPICS}/{topic.name}", values.dump_topic(topic))
        for topic in (moved | written).values():
            yield self._put(f"{PARTITIONS}/{topic.name}", values.dump_partitions(topic))
        for topic in changes.topics_deleted:
            if topic.name not in image.topics:
                yield self._delete(f"{TOPICS}/{topic.name}")
                yield self._delete(f"{PARTITIONS}/{topic.name}")
        for resource, configs in changes.configs.items():
            path = f"{CONFIGS[resource.type]}/{resource.name or ALL_BROKERS}"
            yield self._put(path, values.dump_configs(configs)) if configs else self._delete(path)
        for broker_id, broker in changes.brokers.items():
            path = f"{BROKERS}/{broker_id}"
            yield self._delete(path) if broker is None else self._put(path, values.dump_broker(broker))
        if changes.controller_id == NO_CONTROLLER:
            yield self._delete(CONTROLLER)
        elif changes.controller_id is not None:
            yield self._put(CONTROLLER, values.dump(changes.controller_id))
        if changes.features is not None:
            yield self._put(FEATURES, values.dump_features(changes.features))
        yield from self._security_operations(changes)

    def _security_operations(self, changes: Changes) -> Iterator[Operation]:
        for (type_, name, pattern), rules in changes.acls.items():
            path = f"{ACLS}/{int(type_)}/{int(pattern)}/{name}"
            yield self._put(path, values.dump(security_values.rules_as_json(rules))) if rules else self._delete(path)
        for user, credentials in changes.scram_credentials.items():
            path, value = f"{SCRAM_CREDENTIALS}/{user}", security_values.credentials_as_json(credentials)
            yield self._put(path, values.dump(value)) if value else self._delete(path)
        for entity, quotas in changes.quotas.items():
            path = f"{QUOTAS}/{values.dump(entity).decode()}"
            yield self._put(path, values.dump(dict(quotas))) if quotas else self._delete(path)

    def _put(self, path: str, value: bytes) -> Operation:
        version = self._versions.get(path)
        if version is None:
            return Create(path, value, is_ephemeral=path.startswith(_EPHEMERAL))
        return Set(path, value, version)

    def _delete(self, path: str) -> Delete:
        return Delete(path, self._versions[path])

    # Reading

    def _check_format(self, new_cluster_id: str) -> None:
        found = self._store.get(FORMAT)
        if found is None:
            self._store.transact(
                [Create(FORMAT, values.dump(FORMAT_VERSION)), Create(CLUSTER_ID, values.dump(new_cluster_id))]
            )
            return
        version = parsed(FORMAT, values.load_number, found.value)
        if version > FORMAT_VERSION:
            raise StoreError(
                f"the metadata was written by a newer Lamina: it has format {version}, "
                f"and this one knows formats up to {FORMAT_VERSION}"
            )

    def _load(self) -> Image:
        cluster_id = self._get(CLUSTER_ID)
        if cluster_id is None:
            raise StoreError(f"the metadata store has no {CLUSTER_ID}")
        controller, features = self._get(CONTROLLER), self._get(FEATURES)
        brokers = [
            parsed(f"{BROKERS}/{name}", values.load_broker, name, value) for name, value in self._below(BROKERS).items()
        ]
        topics = self._load_topics()
        return Image(
            cluster_id=parsed(CLUSTER_ID, values.load_text, cluster_id),
            brokers={broker.id: broker for broker in brokers},
            controller_id=NO_CONTROLLER if controller is None else parsed(CONTROLLER, values.load_number, controller),
            topics=topics,
            topic_names={topic.id: topic.name for topic in topics.values()},
            configs={
                ConfigResource(type_, "" if name == ALL_BROKERS else name): configs
                for type_, path in CONFIGS.items()
                for name, value in self._below(path).items()
                if (configs := parsed(f"{path}/{name}", values.load_configs, value))
            },
            features=Features() if features is None else parsed(FEATURES, values.load_features, features),
            acls=dict(parsed(f"{ACLS}/{name}", _load_acls, name, value) for name, value in self._below(ACLS).items()),
            scram_credentials={
                user: parsed(f"{SCRAM_CREDENTIALS}/{user}", _load_credentials, value)
                for user, value in self._below(SCRAM_CREDENTIALS).items()
            },
            quotas=dict(
                parsed(f"{QUOTAS}/{name}", _load_quotas, name, value) for name, value in self._below(QUOTAS).items()
            ),
        )

    def _load_topics(self) -> dict[str, Topic]:
        topics, partitions = self._below(TOPICS), self._below(PARTITIONS)
        if topics.keys() != partitions.keys():
            name = min(topics.keys() ^ partitions.keys())
            raise StoreError(f"the metadata store has only half of topic {name!r}")
        return {
            name: parsed(f"{TOPICS}/{name}", values.load_topic, name, value, partitions[name])
            for name, value in topics.items()
        }

    def _get(self, path: str) -> bytes | None:
        entry = self._store.get(path)
        if entry is None:
            return None
        self._versions[path] = entry.version
        return entry.value

    def _below(self, path: str) -> dict[str, bytes]:
        """Values by the last part of their path."""
        entries = self._store.below(path)
        self._versions |= {path: entry.version for path, entry in entries.items()}
        return {found[len(path) + 1 :]: entry.value for found, entry in entries.items()}


def _load_acls(name: str, value: bytes) -> tuple[ResourcePattern, frozenset[AccessRule]]:
    type_, pattern, resource_name = name.split("/", 2)
    key = security_values.pattern_from_json(int(type_), resource_name, int(pattern))
    return key, security_values.rules_from_json(values.load(value))


def _load_credentials(value: bytes) -> Mapping[ScramMechanism, ScramCredential]:
    return security_values.credentials_from_json(values.load(value))


def _load_quotas(name: str, value: bytes) -> tuple[QuotaEntity, Mapping[str, float]]:
    entity = security_values.entity_from_json(values.load(name.encode()))
    return entity, security_values.quotas_from_json(values.load(value))
