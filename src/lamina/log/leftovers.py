"""What a crash can leave in a partition's directory, settled before the log is opened (facts 82-85).

Owns the meaning of ``.cleaned``, ``.swap`` and ``.deleted`` after a crash: either the old segments or the new
ones, never both, never half. Directories inside a partition's directory are not its business.
"""

from lamina.errors import CorruptMessage
from lamina.log.files import Disk, Entry
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.scan import headers
from lamina.log.segment import ABORTED_INDEX, LOG

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"
TEMPORARY = ".tmp"


def settle(disk: Disk, directory: str) -> None:
    """Finish or undo an interrupted replacement, and remove files that are not part of a log any more."""
    names = _file_names(disk, directory)
    before = list(names)
    _undo_unfinished(disk, directory, names)
    _finish_swaps(disk, directory, names)
    _remove_orphaned_indexes(disk, directory, names)
    if names != before:
        disk.sync_dir(directory)


def _undo_unfinished(disk: Disk, directory: str, names: list[str]) -> None:
    """Fact 82: what is doomed goes; from the first unfinished segment on, so does everything that is not final."""
    cleaned = [offset for name in names if name.endswith(CLEANED) and (offset := _offset(name)) is not None]
    first_unfinished = min(cleaned, default=None)
    for name in list(names):
        offset = _offset(name)
        unfinished_swap = (
            name.endswith(SWAP) and first_unfinished is not None and offset is not None and offset >= first_unfinished
        )
        if name.endswith((DELETED, CLEANED, TEMPORARY)) or unfinished_swap:
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
    # The log comes last: as long as its .swap is there, a crash in between repeats all of this.
    for name in sorted((name for name in names if name.endswith(SWAP)), key=lambda name: name.endswith(LOG + SWAP)):
        final = name.removesuffix(SWAP)
        disk.rename(f"{directory}/{name}", f"{directory}/{final}")
        names.remove(name)
        if final not in names:
            names.append(final)


def _range_of(disk: Disk, path: str, name: str) -> tuple[int, int]:
    """Base and next offset of a complete new segment, from its batch headers."""
    base = _offset(name) or 0
    next_offset = base
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
    """Fact 84: an index without its log is nobody's."""
    for name in list(names):
        stem, dot, extension = name.rpartition(".")
        if dot + extension in (INDEX, TIME_INDEX, ABORTED_INDEX) and stem + LOG not in names:
            _remove(disk, directory, names, name)


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
