"""A log of thousands of segments: what a turn of the loop does for it does not grow with their square.

Turns are measured in lines of the program, which are the same on every machine.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lamina.log.retention import delete_expired
from lamina.log.steps import run_steps
from tests.cleaning.small_passes import install, planned
from tests.log.building import LogBuilder, a_log
from tests.log.faulty import FaultyDisk

FEW, MANY = 20, 80


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of the log and of cleaning it runs through."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if "/lamina/" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def with_segments(tmp_path: Path, count: int, **settings: Any) -> LogBuilder:
    builder = a_log(tmp_path / str(count), **settings)
    for _ in range(count):
        builder.append(b"k=v")
        builder.log.roll(builder.now_ms)
    return builder


def lines_to_replace_all(builder: LogBuilder) -> int:
    old = list(builder.log.segments)[:-1]
    new = [builder.rewrite([segment], []) for segment in old]

    def replace_all() -> None:
        for one, other in zip(new, old, strict=True):
            run_steps(builder.log.replace([one], [other], builder.now_ms))

    return lines_of(replace_all)


def test_replacing_every_segment_takes_lines_in_proportion(tmp_path: Path) -> None:
    few, many = (lines_to_replace_all(with_segments(tmp_path, count)) for count in (FEW, MANY))
    assert many < 1.3 * MANY / FEW * few


def test_one_group_of_all_segments_is_renamed_on_a_thread(tmp_path: Path) -> None:
    """What is done between two steps is in memory; only the new segment's own names change there."""
    disk = FaultyDisk()
    builder = a_log(tmp_path, disk)
    for _ in range(MANY):
        builder.append(b"k=v")
        builder.log.roll(builder.now_ms)
    old = list(builder.log.segments)[:-1]
    new = builder.rewrite(old, [])
    renamed = []
    for step in builder.log.replace([new], old, builder.now_ms):
        renamed.append(sum(op.startswith("rename") for op in disk.ops))
        step()
        disk.arm(-1, 0)
    assert max(renamed[1:]) <= 3


def test_retention_opens_indexes_on_a_thread_alone(tmp_path: Path) -> None:
    disk = FaultyDisk()
    builder = a_log(tmp_path, disk, retention_ms=1000)
    for _ in range(MANY):
        builder.append(b"k=v", timestamp=builder.now_ms)
        builder.log.roll(builder.now_ms)
    builder.reopen()
    builder.now_ms += 10_000
    steps = delete_expired(builder.log, builder.now_ms, builder.log.log_end_offset)
    disk.arm(-1, 0)
    read = next(steps)
    assert disk.ops == []
    read()
    assert len([op for op in disk.ops if op.startswith("open")]) > MANY
    disk.arm(-1, 0)
    next(steps)
    assert [op for op in disk.ops if op.startswith("open")] == []
    run_steps(steps)
    assert len(builder.log.segments) == 1


def test_retention_stops_at_the_first_segment_that_is_young(tmp_path: Path) -> None:
    builder = a_log(tmp_path, retention_ms=1000)
    for number in range(10):
        builder.append(b"k=v", timestamp=builder.now_ms + (5000 if number >= 6 else 0))
        builder.log.roll(builder.now_ms)
    builder.reopen()
    builder.now_ms += 3000
    run_steps(delete_expired(builder.log, builder.now_ms, builder.log.log_end_offset))
    assert builder.log.segments.first.base_offset == 6


def lines_to_install(builder: LogBuilder, group_size: int) -> int:
    builder.log.configure(replace(builder.log.config, segment_bytes=1 << 20))
    taken, manifest = planned(builder.log, group_size=group_size)
    return lines_of(lambda: install(builder.log, taken, manifest))


@pytest.mark.parametrize("group_size", [1, 5])
def test_installing_a_result_takes_lines_in_proportion(tmp_path: Path, group_size: int) -> None:
    few, many = (
        lines_to_install(with_segments(tmp_path, count, compact=True, delete=False), group_size)
        for count in (FEW, MANY)
    )
    assert many < 1.3 * MANY / FEW * few
