"""Carrying out passes over the logs of a story, on files, and reading what came of them."""

import itertools
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from lamina.cleaning.clean_log import clean_log, groups_to_rewrite, make_manifest
from lamina.cleaning.contract import AbortedEntry, ActiveProducer, Manifest, OutputGroup, Plan, Seconds, SourceSegment
from lamina.cleaning.header_scan import SegmentVerdicts, judge_batches, scan_headers
from lamina.cleaning.rewriting import rewrite_group
from lamina.log.transaction_index import unpack_aborted
from lamina.pipeline.shuffle import Gathered, Packed, gather_group, reduce_bucket, scan_into_buckets
from lamina.records.batch import check_crc, read_header, walk
from lamina.records.record import read_records
from tests.compaction.model import LIMIT_BYTES, Abort, Pass, Segment, Survivor
from tests.compaction.story import Story

_NUMBERS = itertools.count()


class Way(StrEnum):
    """How the records that are superseded are found."""

    ONE_TASK = "one_task"
    SHUFFLE = "shuffle"


def plan_of(directory: Path, story: Story, p: Pass, **changes: Any) -> Plan:
    """The plan of a pass, with its sources in the pass folder."""
    cleanable = [segment for segment in story.segments if segment.base_offset < p.end_offset]
    bases = [*(segment.base_offset for segment in cleanable[1:]), p.end_offset]
    plan = Plan(
        plan_id=f"p{next(_NUMBERS)}",
        topic="topic",
        topic_id=bytes(16),
        partition=0,
        directory=str(directory),
        pass_time_ms=p.now_ms,
        delete_retention_ms=p.delete_retention_ms,
        segment_bytes=2**30,
        segment_index_bytes=1 << 16,
        index_interval_bytes=100,
        max_message_bytes=1 << 20,
        first_dirty_offset=p.first_dirty_offset,
        first_uncleanable_offset=p.end_offset,
        segments=tuple(
            SourceSegment(
                base_offset=segment.base_offset,
                next_base_offset=next_base,
                size_bytes=len(segment.data),
                index_bytes=8 * (len(segment.batches) // 2),
                time_index_bytes=12,
                modified_ms=1_500_000_000_000 + segment.base_offset,
                log_name=f"{segment.base_offset:020d}.log",
            )
            for segment, next_base in zip(cleanable, bases, strict=True)
        ),
        producers=tuple(ActiveProducer(number, *state) for number, state in p.producers.items()),
        aborted=tuple(
            AbortedEntry(a.producer_id, a.first_offset, a.last_offset, a.last_stable_offset) for a in story.aborts
        ),
        memory_limit_bytes=1 << 24,
        throttle_bytes_per_second=None,
        hash_key=bytes(range(16)),
    )
    plan = replace(plan, **changes)
    folder = Path(plan.pass_folder)
    folder.mkdir(parents=True)
    for source, segment in zip(plan.segments, cleanable, strict=True):
        (folder / source.log_name).write_bytes(segment.data)
    return plan


def read_group(plan: Plan, group: OutputGroup) -> Segment:
    """The new segment of a group, its CRCs checked."""
    files = {file.extension: (Path(plan.pass_folder) / file.name).read_bytes() for file in group.files}
    data = files[".log"]
    batches = []
    for position, header in walk(data):
        check_crc(data, position, header)
        batches.append(data[position : position + header.size_bytes])
    assert b"".join(batches) == data
    return Segment(group.base_offset, batches, [Abort(*entry) for entry in unpack_aborted(files.get(".txnindex", b""))])


def run_pass(plan: Plan, way: Way = Way.ONE_TASK, **options: Any) -> tuple[Manifest, list[Segment]]:
    manifest = clean_by_shuffle(plan) if way is Way.SHUFFLE else clean_log(plan, "0", **options)
    return manifest, [read_group(plan, group) for group in manifest.groups]


def verdicts_of(plan: Plan) -> list[SegmentVerdicts]:
    return judge_batches(plan, [scan_headers(plan, number) for number in range(len(plan.segments))])


def marks_by_hash(plan: Plan, verdicts: list[SegmentVerdicts], bits: int = 2) -> Gathered:
    """As the shuffle does it: hashes divided by their bits, each bucket in log order, masks of what came back."""
    buckets: list[list[Packed]] = [[] for _ in range(1 << bits)]
    for number in range(len(plan.segments)):
        for bucket, row in scan_into_buckets(plan, number, verdicts[number], bits):
            buckets[bucket].insert(0, row)  # Rows come in any order.
    group_of = [0] * len(plan.segments)
    rows = [row for bucket in buckets for _, row in reduce_bucket(bucket, group_of)]
    return gather_group(rows, range(len(plan.segments)), verdicts)


def clean_by_shuffle(plan: Plan) -> Manifest:
    """The steps of ``pipeline.spread`` without Spark between them."""
    verdicts = verdicts_of(plan)
    gathered = marks_by_hash(plan, verdicts)
    masks = [gathered.masks[number] for number in range(len(plan.segments))]
    groups = groups_to_rewrite(plan, verdicts)
    rewritten = [rewrite_group(plan, group, verdicts, masks, "0") for group in groups]
    return make_manifest(
        plan, "0", rewritten, keys=gathered.keys, bytes_read=0, seconds=Seconds(0.0, 0.0, 0.0, 0.0, 0.0)
    )


def install(story: Story, plan: Plan, new: list[Segment]) -> None:
    """Put new segments in the place of their sources."""
    rest = [segment for segment in story.segments if segment.base_offset >= plan.first_uncleanable_offset]
    story.segments = new + rest


def assert_survived(batch: bytes, expected: Survivor) -> None:
    """The batch is what the model says is left of one."""
    if expected.copied is not None:
        assert batch == expected.copied
        return
    header = read_header(batch)
    assert header._replace(length=0, crc=0) == expected.header._replace(length=0, crc=0)
    assert tuple(read_records(batch, 0, header, LIMIT_BYTES)) == expected.records


def assert_cleaned(
    plan: Plan, manifest: Manifest, new: list[Segment], expected: list[tuple[list[Survivor], list[Abort]]]
) -> None:
    """The new segments are what the model says, group by group."""
    by_source = dict(zip((segment.base_offset for segment in plan.segments), expected, strict=True))
    assert [base for group in manifest.groups for base in group.sources] == list(by_source)
    for group, segment in zip(manifest.groups, new, strict=True):
        survivors = [survivor for base in group.sources for survivor in by_source[base][0]]
        assert len(segment.batches) == len(survivors)
        for batch, survivor in zip(segment.batches, survivors, strict=True):
            assert_survived(batch, survivor)
        assert segment.aborts == [abort for base in group.sources for abort in by_source[base][1]]
