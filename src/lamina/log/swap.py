"""Putting rewritten segments in the place of the ones they were made from (facts 78-80).

Owns the order of the steps; ``leftovers.settle`` owns what it means when they are interrupted. The directory is
synced after every step that the next one relies on, so that no reordering of names by the disk can lose a
batch or bring one back. Must not know why segments are replaced.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lamina.log.files import sync_file
from lamina.log.leftovers import CLEANED, DELETED, SWAP
from lamina.log.partition_log import Doomed, PartitionLog
from lamina.log.segment import LOG, Segment
from lamina.log.snapshots import snapshot_path


def replace_segments(log: PartitionLog, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
    """Swap ``new`` segments, written and sealed under ``.cleaned`` names, in for ``old`` ones of this log.

    An old segment that retention removed meanwhile is passed over (fact 80). Readers see the new segments as
    soon as their names are safe; ranges out on lease stay readable.
    """
    for wait in replacing(log, new, old, now_ms):
        wait()


def replacing(
    log: PartitionLog, new: Sequence[Segment], old: Sequence[Segment], now_ms: int
) -> Iterator[Callable[[], None]]:
    """The same in steps, for a log whose thread must not wait for the disk.

    Each step waits for the disk and may be done on any thread; the next one is asked for on the log's own. Nobody may
    cut the log between two steps.
    """
    log.require_online()
    for segment in new:
        if segment.suffix != CLEANED:
            raise ValueError(f"{segment.path(LOG)} was not written under a {CLEANED} name")
    yield partial(_failing, log, partial(_take_names, log, new))
    log.require_online()
    present = [segment for segment in old if any(segment is member for member in log.segments)]
    _failing(log, partial(_show, log, new, present, now_ms))
    yield partial(_failing, log, partial(log.disk.sync_dir, log.path))
    log.require_online()
    _failing(log, partial(_rename_all, new, ""))
    yield partial(_failing, log, partial(log.disk.sync_dir, log.path))
    log.require_online()
    _failing(log, partial(_remove_snapshots, log, new, present, now_ms))


def _failing(log: PartitionLog, work: Callable[[], None]) -> None:
    """Do it; a disk error fails the log."""
    try:
        work()
    except OSError as error:
        raise log.fail(error) from error


def _take_names(log: PartitionLog, new: Sequence[Segment]) -> None:
    """Make the new segments durable under ``.swap`` names: from here on a crash leaves them in place."""
    _remove_strays(log, new)
    _make_durable(log, new)
    for segment in sorted(new, key=lambda segment: -segment.base_offset):
        segment.rename(SWAP)
        log.disk.sync_dir(log.path)


def _show(log: PartitionLog, new: Sequence[Segment], present: Sequence[Segment], now_ms: int) -> None:
    """Have readers go to the new segments, and doom the old ones."""
    log.segments.remove(present)
    for segment in new:
        log.segments.add(segment)
    for segment in present:
        segment.rename(DELETED)
        segment.close()
        log.doomed.append(Doomed(now_ms + log.config.file_delete_delay_ms, segment.paths()))


def _rename_all(segments: Sequence[Segment], suffix: str) -> None:
    for segment in segments:
        segment.rename(suffix)


def _remove_strays(log: PartitionLog, new: Sequence[Segment]) -> None:
    """Remove ``.cleaned`` files of an earlier attempt: after a crash they would undo this one (fact 82)."""
    ours = {path for segment in new for path in segment.paths()}
    for entry in log.disk.scan(log.path):
        path = f"{log.path}/{entry.name}"
        if entry.name.endswith(CLEANED) and not entry.is_dir and path not in ours:
            log.disk.unlink(path)


def _make_durable(log: PartitionLog, new: Sequence[Segment]) -> None:
    for segment in new:
        for path in segment.paths():
            sync_file(log.disk, path)
            log.disk.set_modified_ms(path, segment.modified_ms)
    log.disk.sync_dir(log.path)


def _remove_snapshots(log: PartitionLog, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
    """A snapshot goes with its segment, unless a new segment begins there."""
    kept = {segment.base_offset for segment in new}
    for segment in old:
        path = snapshot_path(log.path, segment.base_offset)
        if segment.base_offset not in kept and log.disk.exists(path):
            log.disk.rename(path, path + DELETED)
            log.doomed.append(Doomed(now_ms + log.config.file_delete_delay_ms, [path + DELETED]))
