"""One pass over one log, in one process: a plan → cleaned files in the pass folder and a manifest. No Spark in it.

The steps are functions of their own, for a distributed pass: ``scan_headers`` for each segment,
``judge_batches`` over all in order, ``OffsetMap`` or the two halves of the shuffle (``key_hashes``),
``rewrite_group`` for each of ``groups_to_rewrite``, ``make_manifest``. The same files come of both ways. Must not
touch a live file, nor know a clock but for the figures.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Semaphore

import numpy as np

from lamina.cleaning.contract import Counts, Dropped, Horizons, Manifest, Plan, Seconds
from lamina.cleaning.header_scan import SegmentVerdicts, judge_batches, scan_headers
from lamina.cleaning.kernels import columns as c
from lamina.cleaning.limits import Meter, Throttle, throttle_of, unmetered
from lamina.cleaning.offset_map import OffsetMap
from lamina.cleaning.parallel import run_all, run_in_order
from lamina.cleaning.rewriting import Rewritten, groups_of, rewrite_group
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.log.files import Disk
from lamina.records.columns.memory import Bytes


def clean_log(
    plan: Plan,
    attempt: str,
    *,
    threads: int = 1,
    has_shuffle: bool = False,
    meter: Meter = unmetered,
    disk: Disk | None = None,
    clocks: Clocks = SYSTEM_CLOCKS,
) -> Manifest:
    """Carry out a plan.

    Raises :class:`~lamina.cleaning.failures.CleaningFailed`: ``CorruptLog`` for a bad batch, ``TooManyKeys`` where
    the shuffle has to take over, if there is one; ``OSError`` for the disk. ``meter`` is told of bytes read and
    written, may wait, and may raise to end the pass. What a failed attempt wrote is gone.
    """
    disk = disk or Disk()
    throttle = throttle_of(plan)
    meter = _both(meter, throttle)
    began = clocks.monotonic_seconds()
    numbers = range(len(plan.segments))
    with ThreadPoolExecutor(threads, thread_name_prefix="lamina-clean") as pool:
        scans = run_in_order(pool, (partial(scan_headers, plan, n, disk=disk, meter=meter) for n in numbers), threads)
        verdicts = judge_batches(plan, scans)
    judged = clocks.monotonic_seconds()
    offset_map = OffsetMap(
        plan, verdicts, attempt=attempt, has_shuffle=has_shuffle, disk=disk, threads=threads, meter=meter
    )
    superseded = offset_map.find_superseded()
    found = clocks.monotonic_seconds()
    groups = groups_to_rewrite(plan, verdicts)
    rewritten = _rewrite_all(threads, plan, groups, verdicts, superseded, attempt, disk, meter)
    slept = throttle.finish() if throttle else 0.0
    ended = clocks.monotonic_seconds()
    return make_manifest(
        plan,
        attempt,
        rewritten,
        keys=offset_map.keys,
        bytes_read=offset_map.bytes_read,
        seconds=Seconds(judged - began, found - judged, ended - found, slept, ended - began),
    )


def groups_to_rewrite(plan: Plan, verdicts: Sequence[SegmentVerdicts]) -> list[list[int]]:
    """All groups, or those that hold a passed horizon where the plan wants no other."""
    groups = groups_of(plan)
    if not plan.only_expired:
        return groups
    return [group for group in groups if any(verdicts[number].holds_passed_horizon for number in group)]


def make_manifest(
    plan: Plan,
    attempt: str,
    rewritten: Sequence[Rewritten],
    *,
    keys: int,
    bytes_read: int,
    seconds: Seconds,
) -> Manifest:
    """What a finished pass reports; ``bytes_read`` are those of finding keys, rewriting adds its own."""
    counters = np.array([each.counters for each in rewritten], np.int64).reshape(-1, c.COUNTERS)
    total = [int(value) for value in counters.sum(axis=0)]
    horizons = total[c.HORIZONS]
    sources = {base for each in rewritten for base in each.group.sources}
    return Manifest(
        plan_id=plan.plan_id,
        attempt=attempt,
        end_offset=plan.first_uncleanable_offset,
        groups=tuple(each.group for each in rewritten),
        before=Counts(
            segments=len(sources),
            bytes=sum(segment.size_bytes for segment in plan.segments if segment.base_offset in sources),
            batches=total[c.BATCHES_IN],
            records=total[c.RECORDS_IN],
            tombstones=total[c.TOMBSTONES_IN],
            markers=total[c.MARKERS_IN],
            header_only_batches=total[c.EMPTY_IN],
        ),
        after=Counts(
            segments=len(rewritten),
            bytes=sum(each.group.files[0].size_bytes for each in rewritten),
            batches=total[c.BATCHES_OUT],
            records=total[c.RECORDS_OUT],
            tombstones=total[c.TOMBSTONES_OUT],
            markers=total[c.MARKERS_OUT],
            header_only_batches=total[c.EMPTY_OUT],
        ),
        keys=keys,
        dropped=Dropped(
            superseded=total[c.SUPERSEDED_RECORDS],
            expired_tombstones=total[c.EXPIRED_TOMBSTONES],
            without_key=total[c.RECORDS_WITHOUT_KEY],
            aborted=total[c.ABORTED_RECORDS],
            expired_markers=total[c.EXPIRED_MARKERS],
        ),
        horizons=Horizons(
            set_now=total[c.HORIZONS_SET],
            batches=horizons,
            earliest_ms=int(counters[:, c.EARLIEST_HORIZON].min()) if horizons else None,
            latest_ms=int(counters[:, c.LATEST_HORIZON].max()) if horizons else None,
        ),
        bytes_read=bytes_read + sum(each.bytes_read for each in rewritten),
        bytes_written=sum(each.bytes_written for each in rewritten),
        seconds=seconds,
        oversized_batches=sum(each.oversized_batches for each in rewritten),
    )


def _rewrite_all(
    threads: int,
    plan: Plan,
    groups: Sequence[Sequence[int]],
    verdicts: Sequence[SegmentVerdicts],
    superseded: Sequence[Bytes],
    attempt: str,
    disk: Disk,
    meter: Meter,
) -> list[Rewritten]:
    """The groups in parallel; when one fails, what the others wrote is removed too."""
    turn = Semaphore(threads)
    done: list[Rewritten] = []

    def rewrite(group: Sequence[int]) -> Rewritten:
        found = rewrite_group(plan, group, verdicts, superseded, attempt, disk=disk, meter=meter, turn=turn)
        done.append(found)
        return found

    try:
        # More threads than may compute: the disk is waited for behind the next group's back.
        with ThreadPoolExecutor(2 * threads, thread_name_prefix="lamina-rewrite") as pool:
            return run_all(pool, [partial(rewrite, group) for group in groups])
    except BaseException:
        for each in done:
            for file in each.group.files:
                disk.unlink(f"{plan.pass_folder}/{file.name}")
        raise


def _both(meter: Meter, throttle: Throttle | None) -> Meter:
    if throttle is None:
        return meter

    def spend(size_bytes: int) -> None:
        meter(size_bytes)
        throttle(size_bytes)

    return spend
