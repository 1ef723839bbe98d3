"""Bringing the backup of one broker back, into a data directory that is still empty. Must not know how it is shown."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass

from lamina.log.backup.copier import BackupError, Step
from lamina.log.backup.directory import TakenPartition, checkpoint_contents
from lamina.log.backup.manifest import Manifest, read_manifest
from lamina.log.checkpoints import write_offsets
from lamina.log.clean_shutdown import write_clean_shutdown
from lamina.log.files import Disk
from lamina.log.identity import Identity, new_id, write_meta_properties
from lamina.log.names import partition_directory
from lamina.offline.backup_target import BackupRefused
from lamina.offline.laying_down import Layout, check_layout, lay_down, partition_files, undo_new_files
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, storage_paths


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
    if manifest.cluster is not None:
        raise BackupRefused(f"{backup} is the backup of a cluster: restore it with `lamina cluster restore`")
    data_directory, given = storage_paths(settings)
    layout = _layout(backup, manifest, data_directory, [disk.absolute(path) for path in given])
    check_layout(disk, backup, layout, manifest.partitions)
    planned(layout.size_bytes)

    def write_down(undo: ExitStack) -> None:
        for number, path in enumerate(layout.log_directories):
            undo_new_files(disk, path, undo)
            _write_down(disk, manifest, path, number, layout.log_directories)

    yield from lay_down(disk, backup, layout, write_down)
    return Restored(data_directory, layout.log_directories, manifest)


def _number(one: TakenPartition, log_directories: list[str]) -> int:
    """The log directory for a partition: the one that it was in, as far as there are so many."""
    return one.directory % len(log_directories)


def _layout(backup: str, manifest: Manifest, data_directory: str, log_directories: list[str]) -> Layout:
    """Files about a whole log directory are written again and not among them."""
    places = {
        one.key: f"{log_directories[_number(one, log_directories)]}/{partition_directory(*one.key)}"
        for one in manifest.partitions
    }
    files = partition_files(manifest.files.values(), places)
    metadata = manifest.files.get(METADATA_DB)
    if metadata is None:
        raise BackupError(f"{backup} is damaged: its list of files has no {METADATA_DB}")
    files[f"{data_directory}/{METADATA_DB}"] = metadata
    return Layout(data_directory, log_directories, places, files)


def _write_down(disk: Disk, manifest: Manifest, path: str, number: int, log_directories: list[str]) -> None:
    """Who a log directory belongs to, and what its checkpoints say of the partitions that came into it."""
    known = manifest.directory_ids[number] if number < len(manifest.directory_ids) else None
    write_meta_properties(disk, path, Identity(manifest.cluster_id, manifest.node_id, known or new_id()))
    mine = [one for one in manifest.partitions if _number(one, log_directories) == number]
    for name, offsets in checkpoint_contents(mine).items():
        write_offsets(disk, f"{path}/{name}", offsets)
    if manifest.is_clean:
        write_clean_shutdown(disk, path, manifest.broker_epoch)
