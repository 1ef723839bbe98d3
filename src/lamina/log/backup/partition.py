"""One partition's files, taken beside a broker that goes on appending, rolling, deleting and swapping.

What is taken is the log as it was at some instant, without a hole: all of its closed segments and the active one
up to the end of its last whole batch. Nothing keeps the broker from changing names meanwhile, so the directory is
listed, taken and listed again, and only a change that cannot matter is let pass:

- the active segment grew, or others follow it: what was taken is a shorter log;
- segments at the start are gone, by retention: those that were still there when their turn came are kept.

After anything else (a swap, a cut, another topic of that name) the backup of the partition starts over, a bounded
number of times.

A closed segment is linked only if recovery can never touch it, that is when the segment behind it begins below the
recovery point. A cut below it (``truncation``) first lowers the recovery point on disk and then looks for other
names of the file; the directory's backup looks at the recovery point again after it linked. One of them sees the
other. A cut above it meets copies only, which recovery checks batch by batch. All other files are copied: an
index is written in place when its segment becomes active again.

The indexes of the active segment are left out, because they are in motion and recovery makes them again. Must not
know checkpoints or other partitions.
"""

import errno
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import pairwise

from lamina.log.backup.copier import BackupError, Copier, Step
from lamina.log.epochs import FILE_NAME as LEADER_EPOCHS
from lamina.log.files import Disk, Entry, File, read_file
from lamina.log.identity import PARTITION_METADATA, IdentityError, format_partition_metadata, read_topic_id
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.leftovers import CLEANED, SWAP, segment_logs
from lamina.log.scan import BadBatch, checked_batches
from lamina.log.segment import ABORTED_INDEX
from lamina.log.snapshots import SNAPSHOT
from lamina.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, read_header

TRIES = 20
_MOVED = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}
"""A name that is gone, and a file that became shorter while it was copied."""
_BESIDE_A_LOG = (INDEX, TIME_INDEX, ABORTED_INDEX)


class Moved(Exception):
    """The partition changed in a way that cannot be let pass."""


@dataclass(frozen=True, slots=True)
class TakenSegment:
    base_offset: int
    size_bytes: int
    is_linked: bool


@dataclass(frozen=True, slots=True)
class TakenLog:
    """What was taken of a partition."""

    segments: list[TakenSegment]
    end_offset: int
    damage: str | None = None
    """What is wrong with the source: its bytes were taken as they are."""


@dataclass(frozen=True, slots=True)
class Source:
    """A partition's directory, and what has to be known of it beforehand."""

    disk: Disk
    path: str
    topic_id: bytes
    recovery_point: int
    """As it was on disk before anything was taken."""
    is_still: bool
    """Whether a clean stop left it and no broker runs: then everything in it is final."""
    is_running: Callable[[], bool]


@dataclass(slots=True)
class _Attempt:
    segments: list[TakenSegment] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Segments that were gone when their turn came."""
    end_offset: int = 0
    damage: str | None = None


def take_partition(
    source: Source, copier: Copier, target: str, pause: Callable[[], None]
) -> Generator[Step, None, TakenLog | None]:
    """Take a partition into ``target`` below the backup; ``None`` when the directory is not, or no more, the topic's.

    ``pause`` is called before another attempt. Raises :class:`BackupError` when the directory never holds still.
    """
    for attempt in range(TRIES):
        if attempt:
            pause()
        copier.remove_tree(target)
        try:
            if not _is_of_topic(source):
                return None
            taken = yield from _take(source, copier, target, is_last_try=attempt == TRIES - 1)
            if taken is None:
                copier.remove_tree(target)
            return taken
        except OSError as error:
            if error.errno not in _MOVED:
                raise
            yield Step("moved", source.path)
        except Moved:
            yield Step("moved", source.path)
    copier.remove_tree(target)
    raise BackupError(
        f"{source.path} did not hold still in {TRIES} attempts: try again when fewer segments come and go"
    )


def _is_of_topic(source: Source) -> bool:
    try:
        return read_topic_id(source.disk, source.path) == source.topic_id
    except (IdentityError, NotADirectoryError):
        return False


def _take(source: Source, copier: Copier, target: str, *, is_last_try: bool) -> Generator[Step, None, TakenLog | None]:
    disk, path = source.disk, source.path
    copier.make_dir(target)
    # Before the segments: epochs that begin later are above the recovery point, and recovery reads them again.
    epochs = _read_or_nothing(disk, f"{path}/{LEADER_EPOCHS}")
    yield Step("epochs", path)
    before = disk.scan(path)
    yield Step("listed", path)
    _require_no_swap(source, before)
    taken = _Attempt()
    names = {entry.name: entry for entry in before if not entry.is_dir}
    logs = segment_logs(before)
    for entry, following in pairwise(logs):
        is_safe = _base(following) < source.recovery_point
        _take_closed(source, copier, target, entry, names, taken, may_link=is_safe)
        yield Step("segment", f"{path}/{entry.name}", entry.size_bytes)
    for entry in logs[-1:]:
        _take_active(source, copier, target, entry, names, taken, is_last_try=is_last_try)
        yield Step("active", f"{path}/{entry.name}", entry.size_bytes)
    _take_small_files(source, copier, target, before, taken)
    if epochs is not None:
        copier.write(f"{target}/{LEADER_EPOCHS}", epochs)
    copier.write(f"{target}/{PARTITION_METADATA}", format_partition_metadata(source.topic_id))
    copier.sync_dir(target)
    yield Step("taken", path)
    after = disk.scan(path)
    _require_no_swap(source, after)
    _require_same_log(logs, after, taken)
    if not {entry.name for entry in logs} <= {entry.name for entry in after}:
        # A listing is not made in one instant and may miss a name that changes: what is gone is gone twice.
        _require_same_log(logs, disk.scan(path), taken)
    if not _is_of_topic(source):
        return None
    return TakenLog(taken.segments, taken.end_offset, taken.damage)


def _require_no_swap(source: Source, entries: list[Entry]) -> None:
    """While segments are swapped their names say nothing; after a crash the next start finishes that."""
    if any(entry.name.endswith(SWAP) for entry in entries) and source.is_running():
        raise Moved


def _require_same_log(logs: list[Entry], after: list[Entry], taken: _Attempt) -> None:
    """Let pass only what the module's docstring says. Files are told apart by more than their names."""
    now = {entry.name: entry for entry in segment_logs(after)}
    survivors = [entry for entry in logs if entry.name in now]
    if survivors != logs[len(logs) - len(survivors) :] or (logs and not survivors):
        raise Moved
    for entry in survivors:
        found = now[entry.name]
        # The active one may have grown, or given back what was preallocated; not what was taken of it.
        is_whole = found.size_bytes == entry.size_bytes
        if entry is logs[-1]:
            is_whole = found.size_bytes >= taken.segments[-1].size_bytes
        if found.inode != entry.inode or not is_whole or entry.name in taken.lost:
            raise Moved
    known = {entry.name for entry in logs}
    if any(name not in known and not (logs and name > logs[-1].name) for name in now):
        raise Moved


def _take_closed(
    source: Source,
    copier: Copier,
    target: str,
    entry: Entry,
    names: dict[str, Entry],
    taken: _Attempt,
    *,
    may_link: bool,
) -> None:
    """Take a segment with its indexes. If one of its files is gone, so is the log up to here."""
    try:
        bring = copier.link if may_link else copier.copy
        file = bring(f"{source.path}/{entry.name}", f"{target}/{entry.name}", entry.modified_ms, entry.size_bytes)
        _take_beside(source, copier, target, entry, names)
    except FileNotFoundError:
        taken.lost.add(entry.name)
        taken.segments.clear()
        copier.remove_tree(target)
        copier.make_dir(target)
        return
    taken.segments.append(TakenSegment(_base(entry), entry.size_bytes, file.is_linked))


def _take_beside(source: Source, copier: Copier, target: str, entry: Entry, names: dict[str, Entry]) -> None:
    for extension in _BESIDE_A_LOG:
        beside = names.get(entry.name[:20] + extension)
        if beside is not None:
            _copy(source, copier, target, beside)


def _copy(source: Source, copier: Copier, target: str, entry: Entry) -> None:
    copier.copy(f"{source.path}/{entry.name}", f"{target}/{entry.name}", entry.modified_ms, entry.size_bytes)


def _take_active(
    source: Source,
    copier: Copier,
    target: str,
    entry: Entry,
    names: dict[str, Entry],
    taken: _Attempt,
    *,
    is_last_try: bool,
) -> None:
    """Copy the active segment up to the end of its last whole batch: what lies behind it is being written."""
    path = f"{source.path}/{entry.name}"
    file = source.disk.open(path)
    try:
        size_bytes = file.size()
        end, taken.end_offset, bad = _whole_batches(file, size_bytes, _base(entry))
        if bad is not None and _holds_a_batch(file, bad.position, size_bytes):
            # A batch under way in a preallocated file looks like this too, but not for long.
            if not is_last_try:
                raise Moved
            taken.damage = f"{path}: {bad}"
            end = size_bytes
    finally:
        file.close()
    copier.copy(path, f"{target}/{entry.name}", entry.modified_ms, end)
    if source.is_still:
        _take_beside(source, copier, target, entry, names)
    taken.segments.append(TakenSegment(_base(entry), end, is_linked=False))


def _whole_batches(file: File, size_bytes: int, next_offset: int) -> tuple[int, int, BadBatch | None]:
    """Where the good batches of a file end, the offset behind them, and what ended them before the file did."""
    end = 0
    try:
        for position, header, _ in checked_batches(file, 0, size_bytes):
            end, next_offset = position + header.size_bytes, header.next_offset
    except BadBatch as bad:
        return end, next_offset, bad
    return end, next_offset, None


def _holds_a_batch(file: File, position: int, size_bytes: int) -> bool:
    """Whether a batch of a sane length lies there whole, so that its being bad is no matter of its end."""
    data = file.pread(HEADER_BYTES, position)
    if len(data) < HEADER_BYTES or not any(data):
        return False
    length = read_header(data).length
    return 0 < length <= size_bytes - position - LOG_OVERHEAD_BYTES


def _take_small_files(source: Source, copier: Copier, target: str, entries: list[Entry], taken: _Attempt) -> None:
    """Producer snapshots of the segments that were taken; after a crash also what a swap left half done."""
    bases = {segment.base_offset for segment in taken.segments}
    for entry in entries:
        is_snapshot = entry.name.endswith(SNAPSHOT) and entry.name[:20].isdecimal()
        is_wanted = is_snapshot and (int(entry.name[:20]) in bases or source.is_still)
        if is_wanted or entry.name.endswith((SWAP, CLEANED)):
            try:
                _copy(source, copier, target, entry)
            except FileNotFoundError:
                # A snapshot goes with its segment, and is not missed: the log before it tells the same.
                copier.remove(f"{target}/{entry.name}")


def _read_or_nothing(disk: Disk, path: str) -> bytes | None:
    try:
        return read_file(disk, path)
    except FileNotFoundError:
        return None


def _base(entry: Entry) -> int:
    return int(entry.name[:20])
