"""Retention by time, by size and by the log start; fact 95."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.log.building import NOW_MS, LogBuilder, a_log, expire


def hourly(tmp_path: Path, segments: int = 4, **settings: Any) -> LogBuilder:
    """Segments of one batch with one record, an hour apart; the last one is active."""
    builder = a_log(tmp_path, **settings)
    for number in range(segments):
        if number:
            builder.log.roll(builder.now_ms)
        builder.append(b"k=%d" % number, timestamp=NOW_MS + number * 3_600_000)
    return builder


def expired_bases(builder: LogBuilder, high_watermark: int | None = None) -> list[int]:
    bound = builder.log.log_end_offset if high_watermark is None else high_watermark
    return [segment.base_offset for segment in expire(builder.log, builder.now_ms, bound)]


def test_a_segment_goes_when_its_largest_timestamp_is_older_than_allowed(tmp_path: Path) -> None:
    builder = hourly(tmp_path, retention_ms=1000)
    builder.now_ms = NOW_MS + 3_600_000 + 1000
    assert expired_bases(builder) == [0]
    assert (builder.log.log_start_offset, builder.bases()) == (1, [1, 2, 3])
    builder.now_ms += 1
    assert expired_bases(builder) == [1]


def test_when_all_is_expired_the_active_segment_rolls_first(tmp_path: Path) -> None:
    """Fact 95."""
    builder = hourly(tmp_path, retention_ms=1000)
    builder.now_ms = NOW_MS + 100 * 3_600_000
    assert expired_bases(builder) == [0, 1, 2, 3]
    assert (builder.log.log_start_offset, builder.log.log_end_offset, builder.bases()) == (4, 4, [4])
    assert expired_bases(builder) == []
    builder.reopen()
    assert (builder.log.log_start_offset, builder.log.log_end_offset) == (4, 4)


@pytest.mark.parametrize(("high_watermark", "expected"), [(0, []), (1, [0]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])])
def test_nothing_at_or_above_the_high_watermark_goes(tmp_path: Path, high_watermark: int, expected: list[int]) -> None:
    builder = hourly(tmp_path, retention_ms=1000)
    builder.now_ms = NOW_MS + 100 * 3_600_000
    assert expired_bases(builder, high_watermark) == expected


def test_without_timestamps_the_files_age_counts(tmp_path: Path) -> None:
    """Fact 16."""
    builder = a_log(tmp_path, retention_ms=1000)
    builder.append(b"k=v", timestamp=-1)
    builder.log.roll(builder.now_ms)
    builder.append(b"k=v")
    builder.now_ms += 1000
    assert expired_bases(builder) == []
    builder.now_ms += 1
    assert expired_bases(builder) == [0, 1]


def test_the_oldest_go_while_the_rest_still_fills_the_allowance(tmp_path: Path) -> None:
    builder = hourly(tmp_path, retention_ms=-1)
    size_bytes = builder.log.size_bytes() // 4
    for allowed, expected in ((4 * size_bytes, []), (3 * size_bytes + 1, []), (3 * size_bytes, [0]), (0, [1, 2, 3])):
        builder.log.configure(replace(builder.config, retention_bytes=allowed))
        assert expired_bases(builder) == expected


def test_segments_wholly_below_the_log_start_go_whatever_the_policy(tmp_path: Path) -> None:
    builder = hourly(tmp_path, compact=True, delete=False, retention_ms=0, retention_bytes=0)
    builder.now_ms = NOW_MS + 100 * 3_600_000
    assert expired_bases(builder) == []
    builder.log.advance_log_start(2)
    assert expired_bases(builder) == [0, 1]
    builder.log.advance_log_start(4)
    assert expired_bases(builder) == [2]
    assert builder.bases() == [3]


def test_a_reader_finishes_its_segment_and_the_files_go_after_the_delay(tmp_path: Path) -> None:
    builder = hourly(tmp_path, retention_ms=1000, file_delete_delay_ms=500)
    lease = builder.log.read(0, 10_000)
    assert lease is not None
    before = lease.read()
    builder.now_ms = NOW_MS + 3_600_000
    assert expired_bases(builder) == [0]
    assert builder.file(0, ".log.deleted").exists()
    due = builder.log.take_due_paths(builder.now_ms + 500)
    assert sorted(Path(path).name for path in due) == [
        f"{0:020d}{extension}.deleted" for extension in (".index", ".log", ".timeindex")
    ]
    for path in due:
        builder.disk.unlink(path)
    assert lease.read() == before
    lease.give_back()
