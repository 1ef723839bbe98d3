"""A backup of everything that a broker keeps, taken beside it while it runs, or while it is stopped.

No lock is held and the broker is not asked for anything. Why the result is consistent whatever happens meanwhile:

- **The metadata is copied first, and is what the backup holds.** A topic that is made later is not in it and is not
  taken; a partition that is added later neither.
- **A topic that loses a directory while it is taken was deleted**: the metadata says so before a directory is
  renamed. So the metadata is looked at again in the end, and such a topic is taken out of the backup as a whole.
  One that was taken before it was deleted stays: it was there when the backup began. A directory that is missing
  though its topic is still there is a loss of the broker's own, and is named.
- **Producer ids** are those of the second look: blocks are in the store before an id is given, so no log that was
  taken holds an id that the restored broker could give again.
- **Leader epochs** of the metadata may be behind the logs; the next start begins one above both.
- **Logs**: log/backup/partition.py.

A backup has its name only when it is whole: until then it is ``TARGET.partial``. Must not know how it is shown.
"""

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass

from lamina import __version__
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.image.changes import remove_topic
from lamina.image.image import Image
from lamina.log.backup import MANIFEST
from lamina.log.backup.copier import BackupError, Copier, Step
from lamina.log.backup.directory import LOGS, DirectoryBackup, TakenPartition, checkpoint_contents
from lamina.log.backup.manifest import Manifest, dump_manifest
from lamina.log.checkpoints import write_offsets
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN, NO_BROKER_EPOCH, write_clean_shutdown
from lamina.log.files import Disk
from lamina.log.identity import META_PROPERTIES, Identity, IdentityError, new_id, write_meta_properties
from lamina.log.names import partition_directory
from lamina.offline.backup_target import PARTIAL, BackupRefused, check_target, claimed
from lamina.settings.broker import NODE_ID
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, storage_paths
from lamina.store.copying import copy_store
from lamina.store.interface import StoreError
from lamina.store.member_file import FILE_NAME as MEMBER_FILE
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore
from lamina.topic_partition import TopicPartition

_METADATA_AFTER = "metadata-after.db"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made, and what is not in it."""

    target: str
    manifest: Manifest
    deleted: list[str]
    """Topics that were deleted meanwhile."""
    unknown: list[str]
    """Directories of partitions that the metadata did not know when the backup began."""
    missing: list[str]
    """Partitions that the broker itself has lost."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a backup needs of the world."""

    disk: Disk
    is_held: Callable[[str], bool]
    """Whether a broker holds the lock file at a path."""
    pause: Callable[[], None]
    """Before something that moved is tried again."""
    planned: Callable[[int], None]
    """Told how many bytes the steps will have behind them in the end."""
    clocks: Clocks = SYSTEM_CLOCKS


def take_backup(
    settings: BrokerSettings, target: str, circumstances: Circumstances, *, may_link: bool
) -> Generator[Step, None, Backup]:
    """Make the backup, step by step. Raises :class:`BackupError`; what is then left of it was removed."""
    disk = circumstances.disk
    data_directory, log_directories = storage_paths(settings)
    target = disk.absolute(target)
    check_target(disk, target, [data_directory, *log_directories])
    if disk.exists(f"{data_directory}/{MEMBER_FILE}"):
        raise BackupRefused(
            f"{data_directory} belongs to a member of a cluster, which others have records of too: "
            "`lamina cluster backup` backs up all of it"
        )
    if not disk.exists(f"{data_directory}/{METADATA_DB}"):
        raise BackupRefused(f"{data_directory} is not a broker's data directory: it has no {METADATA_DB}")
    with claimed(disk, target) as claim:
        try:
            backup = yield from _Taking(settings, target, circumstances, may_link=may_link).run()
        except StoreError as error:
            raise BackupError(str(error)) from error
        claim.complete()
    return backup


class _Taking:
    """A backup under way."""

    def __init__(self, settings: BrokerSettings, target: str, circumstances: Circumstances, *, may_link: bool) -> None:
        self._settings = settings
        self._target = target
        self._circumstances = circumstances
        self._disk = circumstances.disk
        self._copier = Copier(self._disk, target + PARTIAL, may_link=may_link)
        self._data_directory, self._log_directories = storage_paths(settings)
        self._unknown: list[str] = []

    def run(self) -> Generator[Step, None, Backup]:
        started_ms = self._circumstances.clocks.now_ms()
        copy = f"{self._target}{PARTIAL}/{METADATA_DB}"
        copy_store(f"{self._data_directory}/{METADATA_DB}", copy)
        yield Step("metadata", copy)
        store = SqliteStore(copy)
        try:
            metadata = MetadataStore(store, new_id())
            directories = self._open_directories()
            yield Step("checkpoints", self._data_directory)
            places = self._place(directories, metadata.image)
            self._check_free_space(directories, places)
            self._copier.make_dir(LOGS)
            taken: dict[TopicPartition, TakenPartition] = {}
            for number, directory in enumerate(directories):
                wanted = {key: metadata.image.topics[key[0]].id for key, place in places.items() if place == number}
                taken |= yield from directory.take(self._copier, wanted)
            deleted, missing = self._reconcile(store, metadata, taken, _node_id(self._settings, directories))
            yield Step("reconciled", self._data_directory)
        finally:
            store.close()
        self._copier.count(METADATA_DB)
        manifest = self._write_down(directories, metadata.image, list(taken.values()), started_ms)
        yield Step("manifest", self._target)
        return Backup(self._target, manifest, deleted, self._unknown, missing)

    def _open_directories(self) -> list[DirectoryBackup]:
        opened = []
        for number, path in enumerate(map(self._disk.absolute, self._log_directories)):
            try:
                opened.append(
                    DirectoryBackup(self._disk, path, number, self._circumstances.is_held, self._circumstances.pause)
                )
            except OSError as error:
                raise BackupError(
                    f"{path} cannot be read ({error.strerror}): a backup would lack its partitions; "
                    f"mend it, or take it out of log.dirs"
                ) from error
            except IdentityError as error:
                raise BackupError(str(error)) from error
        return opened

    def _place(self, directories: list[DirectoryBackup], image: Image) -> dict[TopicPartition, int]:
        """The number of the directory that each partition is in, the way a start decides it."""
        places: dict[TopicPartition, int] = {}
        for number, directory in enumerate(directories):
            for key in directory.partitions:
                topic = image.topics.get(key[0])
                if topic is None or key[1] >= len(topic.partitions):
                    self._unknown.append(f"{directory.path}/{partition_directory(*key)}")
                elif not topic.is_being_deleted and (
                    key not in places
                    or (
                        key in directory.offset_checkpoints.recovery_points
                        and key not in directories[places[key]].offset_checkpoints.recovery_points
                    )
                ):
                    places[key] = number
        return places

    def _check_free_space(self, directories: list[DirectoryBackup], places: dict[TopicPartition, int]) -> None:
        parent = os.path.dirname(self._target)
        total_bytes = copied_bytes = 0
        for key, number in places.items():
            directory = directories[number]
            can_link = self._copier.may_link and self._disk.device(directory.path) == self._disk.device(parent)
            total, copied = directory.estimate_bytes(key, may_link=can_link)
            total_bytes += total
            copied_bytes += copied
        self._circumstances.planned(total_bytes)
        free_bytes = self._disk.free_bytes(parent)
        if copied_bytes > free_bytes:
            raise BackupError(f"{parent} has {free_bytes} bytes free, and {copied_bytes} have to be copied there")

    def _reconcile(
        self, store: SqliteStore, metadata: MetadataStore, taken: dict[TopicPartition, TakenPartition], node_id: int
    ) -> tuple[list[str], list[str]]:
        """Make metadata and logs agree; returns the topics that were deleted meanwhile and the lost partitions."""
        after, next_id = self._look_again()
        image = metadata.image
        deleted: list[str] = []
        missing: list[str] = []
        for topic in image.topics.values():
            now = after.topics.get(topic.name)
            lost = [
                partition_directory(topic.name, index)
                for index, partition in enumerate(topic.partitions)
                if node_id in partition.made_on and (topic.name, index) not in taken
            ]
            if topic.is_being_deleted or (lost and (now is None or now.id != topic.id or now.is_being_deleted)):
                deleted.append(topic.name)
            else:
                missing += lost
        for name in deleted:
            image = remove_topic(image, name)
            for key in [key for key in taken if key[0] == name]:
                self._copier.remove_tree(f"{LOGS}/{partition_directory(*key)}")
                del taken[key]
        metadata.save(image)
        ProducerIds(store).skip_to(next_id)
        return deleted, missing

    def _look_again(self) -> tuple[Image, int]:
        """The metadata as it is now, and the lowest producer id that was never given out."""
        path = f"{self._target}{PARTIAL}/{_METADATA_AFTER}"
        copy_store(f"{self._data_directory}/{METADATA_DB}", path)
        store = SqliteStore(path)
        try:
            return MetadataStore(store, new_id()).image, ProducerIds(store).next_id()
        finally:
            store.close()
            self._disk.unlink(path)

    def _write_down(
        self, directories: list[DirectoryBackup], image: Image, partitions: list[TakenPartition], started_ms: int
    ) -> Manifest:
        root = f"{self._target}{PARTIAL}/{LOGS}"
        node_id = _node_id(self._settings, directories)
        directory_ids = [None if each.identity is None else each.identity.directory_id for each in directories]
        write_meta_properties(self._disk, root, Identity(image.cluster_id, node_id, directory_ids[0]))
        self._copier.count(f"{LOGS}/{META_PROPERTIES}")
        for name, offsets in checkpoint_contents(partitions).items():
            write_offsets(self._disk, f"{root}/{name}", offsets)
            self._copier.count(f"{LOGS}/{name}")
        is_clean = all(directory.is_still() for directory in directories)
        broker_epoch = directories[0].broker_epoch if is_clean else None
        broker_epoch = NO_BROKER_EPOCH if broker_epoch is None else broker_epoch
        if is_clean:
            write_clean_shutdown(self._disk, root, broker_epoch)
            self._copier.count(f"{LOGS}/{CLEAN_SHUTDOWN}")
        manifest = Manifest(
            __version__,
            image.cluster_id,
            node_id,
            started_ms,
            self._circumstances.clocks.now_ms(),
            is_clean,
            broker_epoch,
            directory_ids,
            sorted(partitions, key=lambda one: one.key),
            dict(self._copier.files),
        )
        self._copier.write(MANIFEST, dump_manifest(manifest))
        self._copier.sync_dir(LOGS)
        return manifest


def _node_id(settings: BrokerSettings, directories: list[DirectoryBackup]) -> int:
    known = (each.identity.node_id for each in directories if each.identity is not None)
    return next((node_id for node_id in known if node_id is not None), settings[NODE_ID])
