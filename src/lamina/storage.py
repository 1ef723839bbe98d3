"""What a broker keeps on disk: its data directory, its metadata and its log directories.

Owns that they are opened together or not at all, and that they belong to one cluster and to this node. Raises
:class:`StartError` with one sentence. Must not open logs.
"""

import os
import shlex
from contextlib import ExitStack
from dataclasses import dataclass

from lamina.log.backup import MANIFEST
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.files import Disk
from lamina.log.identity import IdentityError, new_id, read_meta_properties
from lamina.settings.broker import LAMINA_DATA_DIR, LOG_DIRS, NODE_ID
from lamina.settings.values import BrokerSettings
from lamina.store.interface import StoreError
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore

METADATA_DB = "metadata.db"
LOGS = "logs"
"""The log directory in a data directory, where log.dirs names no other."""
RESTORING = "restore.partial"
"""A file in a data directory into which a backup is being restored, or was until somebody interrupted it."""
GITIGNORE = "# Made by lamina serve; nothing in here belongs in a repository.\n*\n"


class StartError(Exception):
    """Why the broker cannot start, in one sentence."""


@dataclass(frozen=True, slots=True)
class Storage:
    data_directory: str
    database: SqliteStore
    metadata: MetadataStore
    directories: list[LogDirectory]

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


def open_storage(settings: BrokerSettings) -> Storage:
    """Lock and open everything. When that fails, all is as it was: a mark of a clean stop is still there."""
    data_directory, log_directories = storage_paths(settings)
    check_data_directory(data_directory)
    try:
        with ExitStack() as undo:
            _make_data_directory(data_directory)
            database = SqliteStore(os.path.join(data_directory, METADATA_DB))
            undo.callback(database.close)
            metadata = MetadataStore(database, _cluster_id(log_directories) or new_id())
            directories = []
            for path in log_directories:
                directory = LogDirectory.open(path, node_id=settings[NODE_ID], cluster_id=metadata.image.cluster_id)
                undo.callback(directory.close)
                directories.append(directory)
            undo.pop_all()
    except (DirectoryError, IdentityError, StoreError) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{error.filename or data_directory} cannot be used: {error.strerror}") from error
    return Storage(data_directory, database, metadata, directories)


def check_data_directory(path: str) -> None:
    """Raises :class:`StartError` for a backup, or for half of a restored one. Touches nothing."""
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
    """The data directory and the log directories; with ``log.dirs`` alone the first of them is both."""
    given = settings.get(LOG_DIRS)
    if given is None:
        data_directory = os.path.realpath(settings[LAMINA_DATA_DIR])
        return data_directory, (os.path.join(data_directory, LOGS),)
    is_apart = settings.is_given(LAMINA_DATA_DIR)
    return os.path.realpath(settings[LAMINA_DATA_DIR] if is_apart else given[0]), given


def _cluster_id(log_directories: tuple[str, ...]) -> str | None:
    """The cluster that directories with a past belong to."""
    identities = (read_meta_properties(Disk(), path) for path in log_directories)
    return next((found.cluster_id for found in identities if found is not None and found.cluster_id is not None), None)


def _make_data_directory(path: str) -> None:
    os.makedirs(path, exist_ok=True)
    ignore = os.path.join(path, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w") as file:
            file.write(GITIGNORE)
