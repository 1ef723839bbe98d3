"""A distributed pass: one log in many tasks, when its keys do not fit one task.

Its steps are those of ``cleaning.clean_log``: a task scans the headers of each segment; the verdicts follow here, in
log order; the keys go through Spark's shuffle by their hashes (``shuffle``); from there the marks on superseded records
go to the groups, and a task rewrites each group. Values never leave the files. Must not know other logs.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lamina.cleaning.clean_log import groups_to_rewrite, make_manifest
from lamina.cleaning.contract import Plan, Seconds
from lamina.cleaning.engine_messages import Answer, Failure, dump_line, failure_of, load_line
from lamina.cleaning.header_scan import HeaderScan, SegmentVerdicts, judge_batches, scan_headers
from lamina.cleaning.rewriting import Rewritten, rewrite_group
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.pipeline.shuffle import (
    FAILED,
    Packed,
    Superseded,
    bucket_bits,
    gather_group,
    reduce_bucket,
    scan_into_buckets,
)
from lamina.pipeline.tasks import attempt_name, read_progress, spending

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

_NOTHING = np.zeros(0, np.uint8)
_ATTEMPT = "distributed"
"""In the manifest alone: each group is written by an attempt of its own, whose name its files bear."""


class Judged(NamedTuple):
    """What every task of a pass is given."""

    plan: Plan
    verdicts: list[SegmentVerdicts]
    groups: list[list[int]]
    bits: int


class GroupDone(NamedTuple):
    rewritten: Rewritten
    keys: int
    seconds: float


def clean_distributed(context: "SparkContext", plan: Plan, slots: int, clocks: Clocks = SYSTEM_CLOCKS) -> Answer:
    """Carry out a plan; raises what Spark raises when a job fails."""
    began = clocks.monotonic_seconds()
    numbers = range(len(plan.segments))
    scans = context.parallelize(numbers, len(numbers)).map(partial(scan_segment_headers, plan)).collect()
    if failure := next((scan for scan in scans if isinstance(scan, Failure)), None):
        return failure
    verdicts = judge_batches(plan, [scan for scan in scans if isinstance(scan, HeaderScan)])
    groups = groups_to_rewrite(plan, verdicts)
    records = sum(each.record_count for each in verdicts)
    judged = Judged(plan, verdicts, groups, bucket_bits(records, plan.memory_limit_bytes, slots))
    scanned = clocks.monotonic_seconds()
    done = _rewrite(context, judged)
    if failure := next((each for each in done if isinstance(each, Failure)), None):
        return failure
    finished = [each for each in done if isinstance(each, GroupDone)]
    ended = clocks.monotonic_seconds()
    rewriting = max((each.seconds for each in finished), default=0.0)
    return make_manifest(
        plan,
        _ATTEMPT,
        [each.rewritten for each in finished],
        keys=sum(each.keys for each in finished),
        bytes_read=sum(segment.size_bytes for segment in plan.segments),
        seconds=Seconds(
            scanned - began,
            max(ended - scanned - rewriting, 0.0),
            rewriting,
            read_progress(plan).throttled_seconds,
            ended - began,
        ),
    )


def _rewrite(context: "SparkContext", judged: Judged) -> list[GroupDone | Failure]:
    """From the verdicts to the new segments, in one job of three stages."""
    if not judged.groups:
        return []
    shared = context.broadcast(judged)
    try:
        numbers = range(len(judged.plan.segments))
        done: list[GroupDone | Failure] = (
            context.parallelize(numbers, len(numbers))
            .flatMap(partial(scan, shared))
            .partitionBy(1 << judged.bits, _itself)
            .mapPartitions(partial(reduce, shared))
            .partitionBy(len(judged.groups), _itself)
            .mapPartitionsWithIndex(partial(rewrite, shared))
            .collect()
        )
    finally:
        shared.destroy()
    return done


def _itself(number: int) -> int:
    return number


# What the tasks do.


def scan_segment_headers(plan: Plan, number: int) -> HeaderScan | Failure:
    try:
        with spending(plan, f"headers-{number}") as meter:
            return scan_headers(plan, number, meter=meter)
    except Exception as error:
        return failure_of(plan, error)


def scan(shared: "Broadcast[Judged]", number: int) -> Iterator[tuple[int, Packed]]:
    plan, verdicts, _, bits = shared.value
    try:
        with spending(plan, f"scan-{number}") as meter:
            yield from scan_into_buckets(plan, number, verdicts[number], bits, meter)
    except Exception as error:
        yield 0, (number, FAILED, dump_line(failure_of(plan, error)))


def reduce(shared: "Broadcast[Judged]", rows: Iterable[tuple[int, Packed]]) -> Iterator[tuple[int, Superseded]]:
    group_of = {number: place for place, group in enumerate(shared.value.groups) for number in group}
    numbers = range(len(shared.value.plan.segments))
    # A segment that is not rewritten needs no marks: the first group passes over those of others.
    return reduce_bucket((row for _, row in rows), [group_of.get(number, 0) for number in numbers])


def rewrite(
    shared: "Broadcast[Judged]", place: int, rows: Iterable[tuple[int, Superseded]], clocks: Clocks = SYSTEM_CLOCKS
) -> Iterator[GroupDone | Failure]:
    plan, verdicts, groups, _ = shared.value
    gathered = gather_group((row for _, row in rows), groups[place], verdicts)
    if gathered.failure is not None:
        failed: Any = load_line(gathered.failure)
        yield failed
        return
    began = clocks.monotonic_seconds()
    masks = [gathered.masks.get(number, _NOTHING) for number in range(len(plan.segments))]
    try:
        with spending(plan, f"rewrite-{place}") as meter:
            written = rewrite_group(plan, groups[place], verdicts, masks, attempt_name(), meter=meter)
    except Exception as error:
        yield failure_of(plan, error)
        return
    yield GroupDone(written, gathered.keys, clocks.monotonic_seconds() - began)
