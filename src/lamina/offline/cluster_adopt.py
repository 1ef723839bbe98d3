"""A broker that was a cluster by itself becomes the first broker of a cluster, while it is stopped.

Its logs stay where they are: topics, ids, settings, leader epochs and producer ids move from ``metadata.db`` to
ZooKeeper, groups and transactions are in the logs. The order makes it safe to be interrupted anywhere and run again:

1. The metadata is written to ZooKeeper, under a mark that keeps brokers from starting there. Until here the broker
   may still be started as it was; the next run then writes what has changed too.
2. ``cluster.properties`` is written: from now on the broker does not start without its cluster any more.
3. ``metadata.db`` gets another name. It is kept: with it and without ``cluster.properties`` the broker is what it was.
4. The mark in ZooKeeper goes: the broker starts as a member, and so may others. None does before, for a run that was
   interrupted writes the metadata anew.

Must not open logs, nor know how it is shown.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from lamina.image.features import SUPPORTED, why_unsupported
from lamina.image.image import Image
from lamina.log.clean_shutdown import read_clean_shutdown
from lamina.log.directory import LOCK
from lamina.log.files import Disk
from lamina.log.identity import IdentityError, new_id, read_meta_properties, read_topic_id
from lamina.log.names import partition_directory
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, StartError, check_data_directory, storage_paths
from lamina.store import founding
from lamina.store.founding import Founding, FoundingRefused, Inheritance
from lamina.store.interface import Store, StoreError
from lamina.store.member_file import MemberRecord, read_member_file, write_member_file
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore
from lamina.topic_partition import TopicPartition

KEPT_METADATA = "metadata.db.before-cluster"
_WAL = "-wal"


class ClusterAdoptionError(Exception):
    """Why the broker was not made a member, in one sentence."""


@dataclass(frozen=True, slots=True)
class ClusterAdoption:
    data_directory: str
    cluster_id: str
    node_id: int
    image: Image | None
    """What moves to ZooKeeper; ``None`` where an earlier run has moved it."""
    is_done_before: bool = False
    """Whether the broker was a member already, and nothing was left to do."""


def adopt_cluster(
    settings: BrokerSettings, connect: Callable[[], Store], disk: Disk, *, is_dry_run: bool
) -> ClusterAdoption:
    """Make the broker with these settings a member of the cluster that ``connect`` reaches.

    A dry run checks everything and changes nothing. Raises :class:`ClusterAdoptionError`.
    """
    data_directory, log_directories = storage_paths(settings)
    try:
        check_data_directory(data_directory)
        with _locked(disk, log_directories), closing(connect()) as store:
            source = _Source(disk, data_directory, log_directories)
            return _resume(source, store, is_dry_run) or _adopt(source, store, is_dry_run)
    except (IdentityError, StartError, StoreError) as error:
        raise ClusterAdoptionError(str(error)) from error
    except OSError as error:
        raise ClusterAdoptionError(f"{error.filename or data_directory} cannot be used: {error.strerror}") from error


@contextmanager
def _locked(disk: Disk, log_directories: tuple[str, ...]) -> Iterator[None]:
    """No broker runs on them meanwhile."""
    with ExitStack() as held:
        for path in log_directories:
            if not os.path.isdir(path):
                raise ClusterAdoptionError(f"{path} is not a broker's log directory: check --data-dir or log.dirs")
            lock = disk.lock(f"{path}/{LOCK}")
            if lock is None:
                raise ClusterAdoptionError(f"{path} is in use by a broker: stop it first")
            held.enter_context(closing(lock))
        yield


class _Source:
    """The broker's own directories."""

    def __init__(self, disk: Disk, data_directory: str, log_directories: tuple[str, ...]) -> None:
        self.disk = disk
        self.data_directory = data_directory
        self.log_directories = log_directories
        identities = [read_meta_properties(disk, path) for path in log_directories]
        known = [one.node_id for one in identities if one is not None and one.node_id is not None]
        if not known:
            raise ClusterAdoptionError(f"{log_directories[0]} is not a broker's log directory: no broker has used it")
        self.node_id = known[0]

    @property
    def metadata(self) -> str:
        return os.path.join(self.data_directory, METADATA_DB)

    @property
    def founding_source(self) -> str:
        return f"`lamina cluster adopt` of broker {self.node_id}"

    def keep_metadata(self) -> None:
        """Out of the way, and not away."""
        kept = os.path.join(self.data_directory, KEPT_METADATA)
        self.disk.rename(self.metadata, kept)
        if os.path.exists(self.metadata + _WAL):
            self.disk.rename(self.metadata + _WAL, kept + _WAL)
        self.disk.sync_dir(self.data_directory)


def _resume(source: _Source, store: Store, is_dry_run: bool) -> ClusterAdoption | None:
    """Go on where the metadata is in ZooKeeper already; ``None`` where it is not, or not all of it."""
    member = read_member_file(source.data_directory)
    if member is None:
        return None
    under_way = founding.founding(store)
    is_mine = under_way is not None and under_way.cluster_id == member.cluster_id and under_way.is_filled
    has_metadata = os.path.exists(source.metadata)
    if has_metadata and not is_mine:
        raise ClusterAdoptionError(
            f"{source.data_directory} belongs to a member of cluster {member.cluster_id}, and this ZooKeeper knows "
            "nothing of its adoption: name the one that the first run named"
        )
    if is_mine and not is_dry_run:
        if has_metadata:
            source.keep_metadata()
        founding.directory_laid(store, source.node_id)
    return ClusterAdoption(source.data_directory, member.cluster_id, source.node_id, None, not is_mine)


def _adopt(source: _Source, store: Store, is_dry_run: bool) -> ClusterAdoption:
    if not os.path.exists(source.metadata):
        raise ClusterAdoptionError(f"{source.data_directory} is not a broker's data directory: it has no {METADATA_DB}")
    inheritance = _read(source)
    _check_logs(source, inheritance.image)
    founding.check_may_found(store, source.founding_source)
    adoption = ClusterAdoption(source.data_directory, inheritance.image.cluster_id, source.node_id, inheritance.image)
    if is_dry_run:
        return adoption
    node_id = source.node_id
    wanted = Founding(adoption.cluster_id, source.founding_source, (node_id,), founder=node_id)
    claimed = founding.begin(store, wanted)
    if claimed.cluster_id != adoption.cluster_id:
        raise FoundingRefused(f"ZooKeeper holds cluster {claimed.cluster_id}, and this is {adoption.cluster_id}")
    founding.fill(store, inheritance)
    write_member_file(source.data_directory, MemberRecord(adoption.cluster_id))
    source.keep_metadata()
    founding.directory_laid(store, source.node_id)
    return adoption


def _read(source: _Source) -> Inheritance:
    for path in source.log_directories:
        if read_clean_shutdown(source.disk, path) is None:
            raise ClusterAdoptionError(
                f"{path} was not left by a clean stop: start the broker as before, stop it with SIGTERM, and try again"
            )
    with closing(SqliteStore(source.metadata)) as database:
        image = MetadataStore(database, new_id()).image
        unsupported = why_unsupported(image.features, SUPPORTED)
        if unsupported is not None:
            raise ClusterAdoptionError(unsupported)
        return Inheritance(image, 0, ProducerIds(database).next_id())


def _check_logs(source: _Source, image: Image) -> None:
    """Every partition that the metadata counts as made must be found: a member that lacks one reports it as lost."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            is_made = source.node_id in partition.made_on and not topic.is_being_deleted
            if is_made and not _is_there(source, (topic.name, index), topic.id):
                raise ClusterAdoptionError(
                    f"{partition_directory(topic.name, index)} is in no log directory: is a disk not mounted?"
                )


def _is_there(source: _Source, key: TopicPartition, topic_id: bytes) -> bool:
    for path in source.log_directories:
        directory = os.path.join(path, partition_directory(*key))
        if os.path.isdir(directory) and read_topic_id(source.disk, directory) == topic_id:
            return True
    return False
