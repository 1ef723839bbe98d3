"""What a crash can leave in a partition's directory, put right before the log is opened (facts 82-85).

Owns the meaning of ``.cleaned``, ``.swap`` and ``.deleted`` after a crash: either the old segments or the new
ones, never both, never half. The folder of an unfinished cleaning pass is removed; other directories inside a
partition's directory are left alone.
"""

from lamina.errors import CorruptMessage
from lamina.log.files import TEMPORARY, Disk, Entry
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.names import PASS_FOLDER_PREFIX
from lamina.log.scan import headers
from lamina.log.segment import ABORTED_INDEX, LOG

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"


def complete_swap_operations(disk: Disk, directory: str) -> None:
    """Finish or undo an interrupted replacement, and remove files that are not part of a log any more."""
    remove_pass_folders(disk, directory)
    names = _file_names(disk, directory)
    before = list(names)
    _undo_unfinished(disk, directory, names)
    _finish_swaps(disk, directory, names)
    _remove_orphaned_indexes(disk, directory, names)
    if names != before:
        disk.sync_dir(directory)


def _undo_unfinished(disk: Disk, directory: str, names: list[str]) -> None:
    """Fact 82: remove pending deletes, and all that is not final from the first unfinished segment on.

    The ``.swap`` files go first and for good: without a ``.cleaned`` beside them they would be taken for complete.
    """
    cleaned = [offset for name in names if name.endswith(CLEANED) and (offset := _offset(name)) is not None]
    swaps = [name for name in names if name.endswith(SWAP) and cleaned and (_offset(name) or 0) >= min(cleaned)]
    for name in swaps:
        _remove(disk, directory, names, name)
    if swaps:
        disk.sync_dir(directory)
    for name in list(names):
        if name.endswith((DELETED, CLEANED, TEMPORARY)):
            _remove(disk, directory, names, name)


def _finish_swaps(disk: Disk, directory: str, names: list[str]) -> None:
    """Facts 83 and 84: complete new segments take the place of whatever lies in their range."""
    ranges = [_range_of(disk, f"{directory}/{name}", name) for name in names if name.endswith(LOG + SWAP)]
    if ranges:
        start, end = min(base for base, _ in ranges), max(end for _, end in ranges)
        for name in list(names):
            offset = _offset(name)
            if not name.endswith(SWAP) and offset is not None and start <= offset < end:
                _remove(disk, directory, names, name)
        disk.sync_dir(directory)
    # The log comes last: as long as its .swap is there, a crash in between repeats all of this.
    for name in sorted((name for name in names if name.endswith(SWAP)), key=lambda name: name.endswith(LOG + SWAP)):
        final = name.removesuffix(SWAP)
        disk.rename(f"{directory}/{name}", f"{directory}/{final}")
        names.remove(name)
        if final not in names:
            names.append(final)


def _range_of(disk: Disk, path: str, name: str) -> tuple[int, int]:
    """Base and next offset of a complete new segment, from its batch headers; an empty one still has its base."""
    base = _offset(name) or 0
    next_offset = base + 1
    file = disk.open(path)
    try:
        for _, header in headers(file, 0, file.size()):
            next_offset = header.next_offset
    except CorruptMessage:
        return base, next_offset
    finally:
        file.close()
    return base, next_offset


def _remove_orphaned_indexes(disk: Disk, directory: str, names: list[str]) -> None:
    """Fact 84: remove an index whose log is gone."""
    for name in list(names):
        stem, dot, extension = name.rpartition(".")
        if dot + extension in (INDEX, TIME_INDEX, ABORTED_INDEX) and stem + LOG not in names:
            _remove(disk, directory, names, name)


def remove_pass_folders(disk: Disk, directory: str) -> None:
    """Remove what cleaning passes worked in. Not for good: a folder that comes back after a crash goes again."""
    for entry in disk.scan(directory):
        if entry.is_dir and entry.name.startswith(PASS_FOLDER_PREFIX):
            disk.remove_tree(f"{directory}/{entry.name}")


def remove_temporary_files(disk: Disk, directory: str) -> None:
    for name in _file_names(disk, directory):
        if name.endswith(TEMPORARY):
            disk.unlink(f"{directory}/{name}")


def _file_names(disk: Disk, directory: str) -> list[str]:
    return [entry.name for entry in disk.scan(directory) if not entry.is_dir]


def _remove(disk: Disk, directory: str, names: list[str], name: str) -> None:
    disk.unlink(f"{directory}/{name}")
    names.remove(name)


def _offset(name: str) -> int | None:
    return int(name[:20]) if len(name) > 20 and name[:20].isdecimal() and name[20] == "." else None


def segment_logs(entries: list[Entry]) -> list[Entry]:
    """The ``.log`` files among a directory's names, in offset order."""
    return [
        entry
        for entry in entries
        if not entry.is_dir and entry.name.endswith(LOG) and _offset(entry.name) is not None and len(entry.name) == 24
    ]
