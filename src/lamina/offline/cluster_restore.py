"""Bringing the backup of a cluster back: into an empty ensemble, and into the empty directories of its brokers.

It is run once for each broker, on the machine of that one. Whoever comes first fills ZooKeeper. Of each partition one
replica is laid down, with the broker that is first among its replicas; that one alone is in sync, so only it can lead.
The others start without it and copy it from there. No broker starts before its own replicas are laid down
(store/founding.py).

The cluster gets a new id: what is left of the old one, a broker that comes back or a directory on a disk that was
away, belongs to another cluster then, and is refused. Leader epochs, producer ids and the controller's epoch go on from
those of the backup. Must not know how it is shown.
"""

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

from lamina.image.features import SUPPORTED, why_unsupported
from lamina.image.image import Image
from lamina.image.topic import Partition
from lamina.log.backup.copier import BackupError, Step
from lamina.log.backup.directory import TakenPartition, checkpoint_contents
from lamina.log.backup.manifest import ClusterFacts, Manifest, read_manifest
from lamina.log.checkpoints import write_offsets
from lamina.log.files import Disk
from lamina.log.identity import Identity, IdentityError, new_id, read_meta_properties, write_meta_properties
from lamina.log.names import partition_directory
from lamina.offline.backup_target import BackupRefused
from lamina.offline.laying_down import Layout, check_layout, copy_checked, lay_down, partition_files, undo_new_files
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper_options import given_id
from lamina.storage import METADATA_DB, RESTORING, storage_paths
from lamina.store import founding
from lamina.store.founding import Founding, Inheritance
from lamina.store.interface import Store, StoreError
from lamina.store.member_file import MemberRecord, read_member_file, write_member_file
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class ClusterRestored:
    """One broker's part of it."""

    data_directory: str
    log_directories: list[str]
    cluster_id: str
    node_id: int
    partitions: list[TakenPartition]
    waiting: tuple[int, ...]
    """Brokers whose directories are still to be laid down."""
    manifest: Manifest


def restore_cluster(
    settings: BrokerSettings, backup: str, connect: Callable[[], Store], disk: Disk, planned: Callable[[int], None]
) -> Generator[Step, None, ClusterRestored]:
    """Restore the broker with these settings, step by step; ``planned`` is told the bytes.

    Raises :class:`BackupError`; the directories are then as they were, and ZooKeeper may wait for the next run.
    """
    backup = disk.absolute(backup)
    manifest = read_manifest(disk, backup)
    if manifest.cluster is None:
        raise BackupRefused(f"{backup} is the backup of one broker: restore it with `lamina restore`")
    node_id = given_id(settings)
    if node_id is None:
        raise BackupRefused("say which broker is to be restored: give its id with --node-id or node.id")
    try:
        inheritance = _read_metadata(disk, backup, manifest, manifest.cluster)
        broker = _Broker(settings, disk, backup, manifest, inheritance.image, node_id)
        with closing(connect()) as store:
            return (yield from _restore(broker, store, inheritance, planned))
    except StoreError as error:
        raise BackupError(str(error)) from error


def _restore(
    broker: "_Broker", store: Store, inheritance: Inheritance, planned: Callable[[int], None]
) -> Generator[Step, None, ClusterRestored]:
    manifest = broker.manifest
    source = f"`lamina cluster restore` of the backup of cluster {manifest.cluster_id} from {manifest.started_ms} ms"
    under_way = founding.check_may_found(store, source)
    if under_way is None or not broker.is_laid(under_way):
        if under_way is not None and under_way.is_filled and broker.node_id not in under_way.brokers:
            raise BackupRefused(f"broker {broker.node_id} was restored already: start it")
        check_layout(broker.disk, broker.backup, broker.layout, broker.partitions)
        planned(broker.layout.size_bytes)
        brokers = sorted({partition.replicas[0] for partition in _partitions(inheritance.image)} | {broker.node_id})
        under_way = founding.begin(store, Founding(new_id(), source, tuple(brokers)))
        if not under_way.is_filled:
            founding.fill(store, inheritance)
            yield Step("filled", "zookeeper")
        yield from lay_down(broker.disk, broker.backup, broker.layout, broker.writing_down(under_way.cluster_id))
    founding.directory_laid(store, broker.node_id)
    left = founding.founding(store)
    layout = broker.layout
    return ClusterRestored(
        layout.data_directory,
        layout.log_directories,
        under_way.cluster_id,
        broker.node_id,
        broker.partitions,
        () if left is None else left.brokers,
        manifest,
    )


class _Broker:
    """What one broker gets."""

    def __init__(
        self, settings: BrokerSettings, disk: Disk, backup: str, manifest: Manifest, image: Image, node_id: int
    ) -> None:
        self.disk = disk
        self.backup = backup
        self.manifest = manifest
        self.node_id = node_id
        data_directory, given = storage_paths(settings)
        log_directories = [disk.absolute(path) for path in given]
        known = {one for partition in _partitions(image) for one in partition.replicas}
        if known and node_id not in known:
            raise BackupRefused(
                f"broker {node_id} keeps nothing in this backup: its brokers are {', '.join(map(str, sorted(known)))}"
            )
        self.partitions = [one for one in manifest.partitions if _first_replica(image, one) == node_id]
        places = {
            one.key: f"{log_directories[number % len(log_directories)]}/{partition_directory(*one.key)}"
            for number, one in enumerate(self.partitions)
        }
        files = partition_files(manifest.files.values(), places)
        self.layout = Layout(data_directory, log_directories, places, files)

    def is_laid(self, under_way: Founding) -> bool:
        """Whether an earlier run has laid all down and was interrupted before it could say so.

        Raises :class:`BackupRefused` where one has laid another broker down.
        """
        path = self.layout.data_directory
        identities = [self._identity(each) for each in self.layout.log_directories]
        if os.path.exists(f"{path}/{RESTORING}") or None in identities:
            return False
        member = read_member_file(path)
        return member is not None and member.cluster_id == under_way.cluster_id

    def _identity(self, path: str) -> Identity | None:
        try:
            identity = read_meta_properties(self.disk, path)
        except IdentityError as error:
            raise BackupError(str(error)) from error
        if identity is not None and identity.node_id not in (None, self.node_id):
            data_directory = self.layout.data_directory
            is_inside = path == data_directory or path.startswith(f"{data_directory}/")
            place, option = (data_directory, "--data-dir") if is_inside else (path, "log.dirs")
            raise BackupRefused(
                f"{place} belongs to broker {identity.node_id}: give broker {self.node_id} a directory of its own "
                f"with {option}"
            )
        return identity

    def writing_down(self, cluster_id: str) -> Callable[[ExitStack], None]:
        """Who the directories belong to, and what their checkpoints say of the partitions that came into them."""

        def write_down(undo: ExitStack) -> None:
            for path in self.layout.places:
                undo_new_files(self.disk, path, undo)
            for path in self.layout.log_directories:
                write_meta_properties(self.disk, path, Identity(cluster_id, self.node_id, new_id()))
                mine = [one for one in self.partitions if self.layout.partitions[one.key].startswith(f"{path}/")]
                for name, offsets in checkpoint_contents(mine).items():
                    write_offsets(self.disk, f"{path}/{name}", offsets)
            write_member_file(self.layout.data_directory, MemberRecord(cluster_id))

        return write_down


def _read_metadata(disk: Disk, backup: str, manifest: Manifest, facts: ClusterFacts) -> Inheritance:
    """From a copy: whoever opens the database writes to it."""
    file = manifest.files.get(METADATA_DB)
    if file is None:
        raise BackupError(f"{backup} is damaged: its list of files has no {METADATA_DB}")
    with TemporaryDirectory() as directory:
        copy = f"{directory}/{METADATA_DB}"
        try:
            copy_checked(disk, f"{backup}/{METADATA_DB}", copy, file)
        except OSError as error:
            raise BackupError(f"{backup}/{METADATA_DB} cannot be read: {error.strerror}") from error
        with closing(SqliteStore(copy)) as database:
            image = MetadataStore(database, new_id()).image
            unsupported = why_unsupported(image.features, SUPPORTED)
            if unsupported is not None:
                raise BackupError(unsupported)
            return Inheritance(_seeded(image), facts.controller_epoch, ProducerIds(database).next_id())


def _seeded(image: Image) -> Image:
    """Of each partition the first replica is there, also of one that is missing: it counts as lost, not as new."""
    return replace(
        image,
        topics={
            name: replace(topic, partitions=tuple(map(_with_one_replica, topic.partitions)))
            for name, topic in image.topics.items()
        },
    )


def _with_one_replica(partition: Partition) -> Partition:
    if partition.leader_epoch < 0:
        return replace(partition, made_on=())
    first = (partition.replicas[0],)
    return replace(partition, leader=first[0], isr=first, made_on=first, is_recovering=False)


def _first_replica(image: Image, taken: TakenPartition) -> int:
    return image.topics[taken.topic].partitions[taken.partition].replicas[0]


def _partitions(image: Image) -> list[Partition]:
    return [partition for topic in image.topics.values() for partition in topic.partitions]
