"""Laying files of a backup down in directories that are still empty.

Everything is copied, never linked: a broker that runs on what was restored writes to its files, and the backup stays
what it is. While that goes on a file in the data directory keeps every broker from starting there; it goes last, when
all is on the disk. Must not know which files make a broker.
"""

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from lamina.log.backup.copier import BackupError, BackupFile, Step
from lamina.log.backup.directory import LOGS, TakenPartition
from lamina.log.files import Disk, copy_file, make_durable_dir, write_new_file
from lamina.log.names import partition_directory
from lamina.offline.backup_target import BackupRefused
from lamina.records.checksum import crc32c
from lamina.storage import RESTORING
from lamina.topic_partition import TopicPartition

_MAY_BE_THERE = {"lost+found"}
"""What a new file system has in it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything goes."""

    data_directory: str
    log_directories: list[str]
    partitions: Mapping[TopicPartition, str]
    """The directory of each."""
    files: Mapping[str, BackupFile]
    """By the path that each gets."""

    @property
    def places(self) -> list[str]:
        return list(dict.fromkeys([self.data_directory, *self.log_directories]))

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


def partition_files(files: Iterable[BackupFile], places: Mapping[TopicPartition, str]) -> dict[str, BackupFile]:
    """Those that are in partitions, by the path that each gets."""
    by_name = {partition_directory(*key): path for key, path in places.items()}
    found: dict[str, BackupFile] = {}
    for file in files:
        top, _, rest = file.path.partition("/")
        directory, _, name = rest.partition("/")
        if top == LOGS and name and directory in by_name:
            found[f"{by_name[directory]}/{name}"] = file
    return found


def check_layout(disk: Disk, backup: str, layout: Layout, partitions: Iterable[TakenPartition]) -> None:
    """Raises :class:`BackupError` for what cannot be laid down. Touches nothing."""
    for place in layout.places:
        _check_place(place, backup)
    _check_backup(backup, layout.files, partitions)
    _check_free_space(disk, layout.files)


def lay_down(
    disk: Disk, backup: str, layout: Layout, write_down: Callable[[ExitStack], None]
) -> Generator[Step, None, None]:
    """Step by step. ``write_down`` writes what is about whole directories. When it raises, all is as it was."""
    with ExitStack() as undo:
        for place in layout.places:
            _make_place(disk, place, undo)
        marker = f"{layout.data_directory}/{RESTORING}"
        write_new_file(disk, marker, b"")
        undo.callback(disk.unlink, marker)
        yield Step("begun", layout.data_directory)
        for path in layout.partitions.values():
            undo.callback(disk.remove_tree, path)
            make_durable_dir(disk, path)
        own = set(layout.partitions.values())
        for target, file in layout.files.items():
            if os.path.dirname(target) not in own:
                undo.callback(disk.unlink, target)
            _copy(disk, f"{backup}/{file.path}", target, file)
            yield Step("copied", target, file.size_bytes)
        write_down(undo)
        for parent in sorted({os.path.dirname(target) for target in layout.files} | set(layout.places)):
            disk.sync_dir(parent)
        yield Step("whole", layout.data_directory)
        disk.unlink(marker)
        disk.sync_dir(layout.data_directory)
        undo.pop_all()


def undo_new_files(disk: Disk, path: str, undo: ExitStack) -> None:
    """What is written from now on right in this directory goes again when something fails."""
    undo.callback(_remove_new, disk, path, set(os.listdir(path)))


def _check_place(path: str, backup: str) -> None:
    if path == backup or path.startswith(f"{backup}/"):
        raise BackupRefused(f"{path} is inside the backup: choose another place")
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return
    if RESTORING in names:
        raise BackupRefused(f"an earlier restore into {path} did not end: remove what is in there and run it again")
    if names - _MAY_BE_THERE:
        raise BackupRefused(f"{path} is not empty: restore into a new directory")


def _make_place(disk: Disk, path: str, undo: ExitStack) -> None:
    if not os.path.exists(path):
        undo.callback(_remove_empty, path)
        make_durable_dir(disk, path)


def _remove_empty(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        return


def _check_backup(backup: str, files: Mapping[str, BackupFile], partitions: Iterable[TakenPartition]) -> None:
    listed = {file.path: file.size_bytes for file in files.values()}
    for one in partitions:
        for segment in one.segments:
            path = f"{LOGS}/{partition_directory(*one.key)}/{segment.base_offset:020d}.log"
            if listed.get(path) != segment.size_bytes:
                raise BackupError(f"{backup} is damaged: its list of files does not have {path} as its partition does")
    for file in files.values():
        path = f"{backup}/{file.path}"
        try:
            size_bytes = os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            raise BackupError(f"{path} is missing: take another backup") from None
        if size_bytes != file.size_bytes:
            raise BackupError(f"{path} has {size_bytes} bytes, not {file.size_bytes}: take another backup")


def _check_free_space(disk: Disk, files: Mapping[str, BackupFile]) -> None:
    wanted: dict[int, int] = {}
    places: dict[int, str] = {}
    for target, file in files.items():
        place = _existing(os.path.dirname(target))
        device = disk.device(place)
        places.setdefault(device, place)
        wanted[device] = wanted.get(device, 0) + file.size_bytes
    for device, size_bytes in wanted.items():
        free_bytes = disk.free_bytes(places[device])
        if size_bytes > free_bytes:
            raise BackupError(f"{places[device]} has {free_bytes} bytes free, and the backup needs {size_bytes} there")


def _existing(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _copy(disk: Disk, source: str, target: str, file: BackupFile) -> None:
    copy_checked(disk, source, target, file)
    disk.set_modified_ms(target, file.modified_ms)


def copy_checked(disk: Disk, source: str, target: str, file: BackupFile) -> None:
    """Raises :class:`BackupError` for bytes that are not those which were backed up."""
    crc = 0

    def see(piece: memoryview) -> None:
        nonlocal crc
        crc = crc32c(piece, crc)

    copy_file(disk, source, target, file.size_bytes, see)
    if file.crc is not None and crc != file.crc:
        raise BackupError(f"{source} is damaged: its CRC is {crc:#010x}, not {file.crc:#010x}: take another backup")


def _remove_new(disk: Disk, path: str, before: Iterable[str]) -> None:
    for name in set(os.listdir(path)) - set(before):
        disk.unlink(f"{path}/{name}")
