"""Bringing a backup back, into a data directory that is still empty.

Everything is copied, never linked: a broker that runs on what was restored writes to its files, and the backup
stays what it is. While that goes on a file in the data directory keeps every broker from starting there; it goes
last, when all is on the disk. Must not know how it is shown.
"""

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from crc32c import crc32c

from lamina.log.backup.copier import BackupError, BackupFile, Step
from lamina.log.backup.directory import LOGS, TakenPartition, checkpoint_contents
from lamina.log.backup.manifest import Manifest, read_manifest
from lamina.log.checkpoints import write_offsets
from lamina.log.clean_shutdown import write_clean_shutdown
from lamina.log.files import Disk, copy_file, make_durable_dir, write_new_file
from lamina.log.identity import Identity, new_id, write_meta_properties
from lamina.log.names import partition_directory
from lamina.offline.backup import BackupRefused
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, RESTORING, storage_paths

_MAY_BE_THERE = {"lost+found"}
"""What a new file system has in it."""


@dataclass(frozen=True, slots=True)
class Restored:
    data_directory: str
    log_directories: list[str]
    manifest: Manifest


def restore(
    settings: BrokerSettings, backup: str, disk: Disk, planned: Callable[[int], None]
) -> Generator[Step, None, Restored]:
    """Restore, step by step; ``planned`` is told the bytes. When it raises, all is as it was."""
    backup = disk.absolute(backup)
    manifest = read_manifest(disk, backup)
    data_directory, given = storage_paths(settings)
    log_directories = [disk.absolute(path) for path in given]
    places = list(dict.fromkeys([data_directory, *log_directories]))
    for place in places:
        _check_place(place, backup)
    files = _files_by_target(manifest, data_directory, log_directories)
    _check_backup(backup, manifest, files)
    _check_free_space(disk, files)
    planned(sum(file.size_bytes for file in files.values()))
    with ExitStack() as undo:
        for place in places:
            _make_place(disk, place, undo)
        marker = f"{data_directory}/{RESTORING}"
        write_new_file(disk, marker, b"")
        undo.callback(disk.unlink, marker)
        yield Step("begun", data_directory)
        for one in manifest.partitions:
            path = f"{log_directories[_number(one, log_directories)]}/{partition_directory(*one.key)}"
            undo.callback(disk.remove_tree, path)
            make_durable_dir(disk, path)
        undo.callback(disk.unlink, f"{data_directory}/{METADATA_DB}")
        for target, file in files.items():
            _copy(disk, f"{backup}/{file.path}", target, file)
            yield Step("copied", target, file.size_bytes)
        for number, path in enumerate(log_directories):
            _write_down(disk, manifest, path, number, log_directories, undo)
        for parent in sorted({os.path.dirname(target) for target in files} | set(places)):
            disk.sync_dir(parent)
        yield Step("whole", data_directory)
        disk.unlink(marker)
        disk.sync_dir(data_directory)
        undo.pop_all()
    return Restored(data_directory, log_directories, manifest)


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


def _number(one: TakenPartition, log_directories: list[str]) -> int:
    """The log directory for a partition: the one that it was in, as far as there are so many."""
    return one.directory % len(log_directories)


def _files_by_target(manifest: Manifest, data_directory: str, log_directories: list[str]) -> dict[str, BackupFile]:
    """Where each file goes; files about a whole log directory are written again and not among them."""
    places = {
        partition_directory(*one.key): log_directories[_number(one, log_directories)] for one in manifest.partitions
    }
    files: dict[str, BackupFile] = {}
    for file in manifest.files.values():
        top, _, rest = file.path.partition("/")
        directory, _, name = rest.partition("/")
        if top == LOGS and name and directory in places:
            files[f"{places[directory]}/{directory}/{name}"] = file
        elif file.path == METADATA_DB:
            files[f"{data_directory}/{METADATA_DB}"] = file
    return files


def _check_backup(backup: str, manifest: Manifest, files: dict[str, BackupFile]) -> None:
    if not any(file.path == METADATA_DB for file in files.values()):
        raise BackupError(f"{backup} is damaged: its list of files has no {METADATA_DB}")
    listed = {file.path: file.size_bytes for file in files.values()}
    for one in manifest.partitions:
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


def _check_free_space(disk: Disk, files: dict[str, BackupFile]) -> None:
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
    crc = 0

    def see(piece: memoryview) -> None:
        nonlocal crc
        crc = crc32c(piece, crc)

    copy_file(disk, source, target, file.size_bytes, see)
    if file.crc is not None and crc != file.crc:
        raise BackupError(f"{source} is damaged: its CRC is {crc:#010x}, not {file.crc:#010x}: take another backup")
    disk.set_modified_ms(target, file.modified_ms)


def _write_down(
    disk: Disk, manifest: Manifest, path: str, number: int, log_directories: list[str], undo: ExitStack
) -> None:
    """Who a log directory belongs to, and what its checkpoints say of the partitions that came into it."""
    known = manifest.directory_ids[number] if number < len(manifest.directory_ids) else None
    before = _names(path)
    undo.callback(_remove_new, disk, path, before)
    write_meta_properties(disk, path, Identity(manifest.cluster_id, manifest.node_id, known or new_id()))
    mine = [one for one in manifest.partitions if _number(one, log_directories) == number]
    for name, offsets in checkpoint_contents(mine).items():
        write_offsets(disk, f"{path}/{name}", offsets)
    if manifest.is_clean:
        write_clean_shutdown(disk, path, manifest.broker_epoch)


def _names(path: str) -> set[str]:
    return set(os.listdir(path))


def _remove_new(disk: Disk, path: str, before: Iterable[str]) -> None:
    for name in _names(path) - set(before):
        disk.unlink(f"{path}/{name}")
