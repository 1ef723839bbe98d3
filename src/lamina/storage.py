"""What a broker keeps on disk: its data directory, its metadata and its log directories.

Owns that they are opened together or not at all, and that they belong to one cluster and to this node. Raises
:class:`StartError` with one sentence. Must not open logs.
"""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from secrets import token_bytes

from lamina.log.backup import MANIFEST
from lamina.log.directory import DirectoryError, DiskUnusable, LogDirectory
from lamina.log.files import Disk
from lamina.log.identity import Identity, IdentityError, new_id, read_meta_properties
from lamina.log.remembered_directories import compare_directories, remember_directories
from lamina.settings.broker import BROKER_ID, LAMINA_DATA_DIR, LOG_DIRS, NODE_ID
from lamina.settings.definition import SettingError
from lamina.settings.listeners import has_sasl
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper import RESERVED_BROKER_MAX_ID
from lamina.settings.zookeeper_options import NO_ID, given_id
from lamina.store.cluster_identity import cluster_id, generated_id
from lamina.store.interface import ClusterStore, Store, StoreError
from lamina.store.login_secret import login_secret
from lamina.store.member_file import FILE_NAME as MEMBER_FILE
from lamina.store.member_file import MemberRecord, read_member_file, write_member_file
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore

METADATA_DB = "metadata.db"
LOGS = "logs"
"""The log directory in a data directory, where log.dirs names no other."""
RESTORING = "restore.partial"
"""A file in a data directory into which a backup is being restored, or was until somebody interrupted it."""
GITIGNORE = "# Made by lamina serve; nothing in here belongs in a repository.\n*\n"


_SECRET_BYTES = 32


class StartError(Exception):
    """Why the broker cannot start, in one sentence."""


@dataclass(frozen=True, slots=True)
class _Opened:
    data_directory: str
    node_id: int
    directories: list[LogDirectory]
    database: Store
    """The cluster's store: a file of this broker's own, or the one that all members share."""
    login_secret: bytes = field(default=b"", kw_only=True, repr=False)
    """What the cluster's brokers alone know; empty where nobody logs in."""

    @property
    def was_clean(self) -> bool:
        """Whether every directory was left by a clean stop."""
        return all(directory.was_clean for directory in self.directories)

    def close(self) -> None:
        """Leave everything as it was found, with no log opened."""
        for directory in self.directories:
            directory.close()
        self.database.close()

    def release(self) -> None:
        """Close without a mark of a clean stop: the next start checks what is there."""
        for directory in self.directories:
            directory.release()
        self.database.close()


@dataclass(frozen=True, slots=True)
class Storage(_Opened):
    """Of a broker that is a cluster by itself."""

    metadata: MetadataStore


@dataclass(frozen=True, slots=True)
class MemberStorage(_Opened):
    """Of a member of a cluster: its metadata is where all members find it."""

    database: ClusterStore
    remembered: MemberRecord
    """What this broker knows of the cluster from before, or that it has just joined."""
    remember: Callable[[MemberRecord], None]
    """Writes it down; may raise OSError."""

    def was_clean_after(self, broker_epoch: int | None) -> bool:
        """Whether every directory was left by the clean stop of the run with this epoch, the last one (KIP-966).

        An older copy of a directory may have a mark too, and lacks what came after it. Without an epoch the mark
        counts: nobody knows of a later run.
        """
        if broker_epoch is None:
            return self.was_clean
        return self.was_clean and all(directory.broker_epoch == broker_epoch for directory in self.directories)


def open_storage(settings: BrokerSettings) -> Storage:
    """Lock and open everything. When that fails, all is as it was: a mark of a clean stop is still there."""
    data_directory, log_directories = storage_paths(settings)
    check_data_directory(data_directory)
    _check_one_data_directory(log_directories, data_directory)
    with _refusals(data_directory), ExitStack() as undo:
        member = read_member_file(data_directory)
        if member is not None:
            raise StartError(
                f"{data_directory} belongs to a member of cluster {member.cluster_id}: "
                "say which ZooKeeper that cluster has, with --zookeeper or zookeeper.connect"
            )
        _make_data_directory(data_directory)
        database = SqliteStore(os.path.join(data_directory, METADATA_DB))
        undo.callback(database.close)
        metadata = MetadataStore(database, _cluster_id(log_directories) or new_id())
        node_id = settings[NODE_ID]
        if node_id == NO_ID:
            raise StartError(f"{NODE_ID.name} = {NO_ID}: a broker without a cluster needs an id: set --node-id")
        directories = _open_directories(data_directory, log_directories, node_id, metadata.image.cluster_id, undo)
        secret = _login_secret(settings, database)
        undo.pop_all()
        return Storage(data_directory, node_id, directories, database, metadata, login_secret=secret)


def open_member_storage(settings: BrokerSettings, store: ClusterStore) -> MemberStorage:
    """As ``open_storage``, for a member of the cluster in ``store``, which this closes when it fails."""
    # With it comes how a cluster's metadata is stored, which a broker by itself never needs.
    from lamina.store.founding import check_may_start

    data_directory, log_directories = storage_paths(settings)
    with _refusals(data_directory), ExitStack() as undo:
        undo.callback(store.close)
        check_data_directory(data_directory)
        _check_one_data_directory(log_directories, data_directory)
        if os.path.exists(os.path.join(data_directory, METADATA_DB)):
            raise StartError(
                f"{data_directory} is the directory of a broker without a cluster: choose another --data-dir"
            )
        remembered = read_member_file(data_directory)
        known = _cluster_id(log_directories) if remembered is None else remembered.cluster_id
        stored = cluster_id(store, new_id(), known)
        node_id = _member_id(settings, log_directories, store)
        check_may_start(store, node_id)
        _make_data_directory(data_directory)
        if remembered is None:
            remembered = MemberRecord(stored)
            write_member_file(data_directory, remembered)
        directories = _open_directories(data_directory, log_directories, node_id, stored, undo)
        secret = _login_secret(settings, store)
        undo.pop_all()
        remember = partial(write_member_file, data_directory)
        return MemberStorage(data_directory, node_id, directories, store, remembered, remember, login_secret=secret)


def _login_secret(settings: BrokerSettings, store: Store) -> bytes:
    if not has_sasl(settings):
        return b""
    return login_secret(store, token_bytes(_SECRET_BYTES))


def _open_directories(
    data_directory: str, paths: tuple[str, ...], node_id: int, cluster_id: str | None, undo: ExitStack
) -> list[LogDirectory]:
    """One whose disk refuses is offline from the start, as long as there are others."""
    directories: list[LogDirectory] = []
    unusable: DiskUnusable | None = None
    for path in paths:
        try:
            directory = LogDirectory.open(path, node_id=node_id, cluster_id=cluster_id)
        except DiskUnusable as error:
            unusable = error
            directory = LogDirectory.unusable(path, str(error))
        directories.append(directory)
        undo.callback(directory.close)
    if unusable is not None and all(directory.failure is not None for directory in directories):
        raise unusable
    _check_identities(directories)
    compare_directories(data_directory, directories)
    remember_directories(data_directory, directories)
    return directories


def _check_identities(directories: list[LogDirectory]) -> None:
    """Two directories with one id are copies of each other: a partition would be in both."""
    by_id: dict[str, LogDirectory] = {}
    for directory in directories:
        directory_id = directory.identity.directory_id
        if directory_id is None:
            continue
        other = by_id.setdefault(directory_id, directory)
        if other is not directory:
            raise DirectoryError(
                f"{other.path} and {directory.path} are the same log directory, {directory_id}: "
                f"take the one that is a copy out of log.dirs"
            )


def _member_id(settings: BrokerSettings, log_directories: tuple[str, ...], store: ClusterStore) -> int:
    """The one that is given, else the one that the directories know, else a new one from the store (R67)."""
    identities = [_identity(path) for path in log_directories]
    known = next((found.node_id for found in identities if found is not None and found.node_id is not None), None)
    given = given_id(settings) if known is None or settings.is_given(NODE_ID) or settings.is_given(BROKER_ID) else None
    if given is not None:
        return given
    return generated_id(store, settings[RESERVED_BROKER_MAX_ID]) if known is None else known


@contextmanager
def _refusals(data_directory: str) -> Iterator[None]:
    """Whatever stands in the way is one sentence."""
    try:
        yield
    except (DirectoryError, IdentityError, SettingError, StoreError) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{error.filename or data_directory} cannot be used: {error.strerror}") from error


def _check_one_data_directory(log_directories: tuple[str, ...], data_directory: str) -> None:
    """Raise :class:`StartError` where several log directories each have what a broker knows of itself."""
    own = [path for path in _with_own_file(log_directories) if os.path.realpath(path) != data_directory]
    if own:
        raise StartError(
            f"{own[0]} and {data_directory} both hold a broker's own file, {METADATA_DB} or {MEMBER_FILE}: "
            f"say with lamina.data.dir which one it is, and move the file of the other away"
        )


def check_data_directory(path: str) -> None:
    """Raises :class:`StartError` for a file, a backup, or half of a restored one. Touches nothing."""
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise StartError(f"{place} is not a directory: name another one with --data-dir")
    if os.path.exists(os.path.join(path, RESTORING)):
        raise StartError(
            f"{path} holds half a backup: wait for lamina restore to end; "
            f"if it was interrupted, remove what is in there and restore again"
        )
    if os.path.exists(os.path.join(path, MANIFEST)):
        raise StartError(
            f"{path} is a backup: restore it first with `lamina restore {shlex.quote(path)} --dir DATA`, "
            "and start the broker on DATA"
        )


def storage_paths(settings: BrokerSettings) -> tuple[str, tuple[str, ...]]:
    """The data directory and the log directories.

    With ``log.dirs`` alone one of them is both: the first, unless another one has the broker's own file. In which order
    they are given, and under which path each of them is, may change.
    """
    given = settings.get(LOG_DIRS)
    if given is None:
        data_directory = os.path.realpath(settings[LAMINA_DATA_DIR])
        return data_directory, (os.path.join(data_directory, LOGS),)
    if settings.is_given(LAMINA_DATA_DIR):
        return os.path.realpath(settings[LAMINA_DATA_DIR]), given
    return os.path.realpath(next(iter(_with_own_file(given)), given[0])), given


def _with_own_file(paths: tuple[str, ...]) -> list[str]:
    """Those that hold the broker's own file; it says in which cluster this broker is, or what that consists of."""
    own = (METADATA_DB, MEMBER_FILE)
    return [path for path in paths if any(os.path.exists(os.path.join(path, name)) for name in own)]


def _cluster_id(log_directories: tuple[str, ...]) -> str | None:
    """The cluster that directories with a past belong to."""
    identities = (_identity(path) for path in log_directories)
    return next((found.cluster_id for found in identities if found is not None and found.cluster_id is not None), None)


def _identity(path: str) -> Identity | None:
    """What a log directory says of itself, if it can be read: one that cannot be used is told when it is opened."""
    try:
        return read_meta_properties(Disk(), path)
    except OSError:
        return None


def _make_data_directory(path: str) -> None:
    os.makedirs(path, exist_ok=True)
    ignore = os.path.join(path, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w") as file:
            file.write(GITIGNORE)
