"""A partition's log in a backup, written from what a leader sent."""

from pathlib import Path

import pytest

from lamina.log.backup.copier import BackupError, Copier
from lamina.log.backup.directory import LOGS
from lamina.log.backup.fetched_log import FetchedLog
from lamina.log.files import Disk
from lamina.records.batch import MAX_RELATIVE_OFFSET
from lamina.records.marker import ControlType, build_marker
from tests.log.building import NOW_MS, a_batch

KEY, TOPIC_ID = ("orders", 3), bytes(range(16))


@pytest.fixture
def copier(tmp_path: Path) -> Copier:
    made = Copier(Disk(), str(tmp_path), may_link=False)
    made.make_dir(LOGS)
    return made


def a_log(copier: Copier, log_start_offset: int = 0, segment_bytes: int = 1 << 30) -> FetchedLog:
    return FetchedLog(copier, KEY, TOPIC_ID, log_start_offset, segment_bytes)


def batches(*offsets: int) -> memoryview:
    return memoryview(b"".join(a_batch(b"k=%d" % offset, base_offset=offset) for offset in offsets))


def files(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / LOGS / "orders-3").glob("*.log")}


def test_batches_are_taken_byte_for_byte_up_to_the_end_that_is_asked_for(copier: Copier, tmp_path: Path) -> None:
    log = a_log(copier)
    log.append(batches(0, 1, 2), 2)
    # What was taken before is sent again where the end lies within a response.
    log.append(batches(1, 2, 3)[:-5], 4)
    taken = log.finish(9)
    assert (taken.log_start_offset, taken.end_offset, taken.high_watermark) == (0, 3, 3)
    assert files(tmp_path) == {f"{0:020d}.log": bytes(batches(0, 1, 2))}
    assert taken.cleaner_offset is None


def test_segments_roll_at_their_size_and_each_has_its_checksum(copier: Copier, tmp_path: Path) -> None:
    size = len(batches(0))
    log = a_log(copier, segment_bytes=2 * size)
    for offset in range(5):
        log.append(batches(offset), 5)
    taken = log.finish(5)
    assert [(each.base_offset, each.size_bytes) for each in taken.segments] == [(0, 2 * size), (2, 2 * size), (4, size)]
    assert sorted(files(tmp_path)) == [f"{base:020d}.log" for base in (0, 2, 4)]
    listed = {name: file for name, file in copier.files.items() if name.endswith(".log")}
    assert sorted(file.size_bytes for file in listed.values()) == [size, 2 * size, 2 * size]
    assert all(file.crc is not None for file in listed.values())


def test_a_log_may_be_closed_and_go_on(copier: Copier, tmp_path: Path) -> None:
    log = a_log(copier)
    log.append(batches(0), 5)
    log.close()
    log.append(batches(1), 5)
    log.finish(2)
    assert files(tmp_path) == {f"{0:020d}.log": bytes(batches(0, 1))}


def test_an_empty_log_says_where_it_begins(copier: Copier, tmp_path: Path) -> None:
    taken = a_log(copier, 70).finish(70)
    assert (taken.log_start_offset, taken.end_offset) == (70, 70)
    assert files(tmp_path) == {f"{70:020d}.log": b""}


def test_a_log_whose_first_batches_were_cleaned_away_begins_where_it_began(copier: Copier, tmp_path: Path) -> None:
    log = a_log(copier, 3)
    log.append(batches(7, 8), 9)
    taken = log.finish(9)
    assert [each.base_offset for each in taken.segments] == [3]
    assert files(tmp_path) == {f"{3:020d}.log": bytes(batches(7, 8))}


def test_a_first_batch_that_is_too_far_from_the_start_has_a_segment_behind_an_empty_one(
    copier: Copier, tmp_path: Path
) -> None:
    far = MAX_RELATIVE_OFFSET + 1
    log = a_log(copier)
    log.append(batches(far), far + 1)
    taken = log.finish(far + 1)
    assert [(each.base_offset, each.size_bytes) for each in taken.segments] == [(0, 0), (far, len(batches(far)))]
    assert files(tmp_path) == {f"{0:020d}.log": b"", f"{far:020d}.log": bytes(batches(far))}
    assert copier.files[f"{LOGS}/orders-3/{0:020d}.log"].size_bytes == 0


def test_a_batch_that_lies_across_the_start_is_whole(copier: Copier) -> None:
    log = a_log(copier, 1)
    log.append(memoryview(a_batch(b"k=0", b"k=1", b"k=2", base_offset=0)), 3)
    taken = log.finish(3)
    assert ([each.base_offset for each in taken.segments], taken.log_start_offset) == ([0], 1)


def test_gaps_tell_how_far_a_log_was_cleaned(copier: Copier) -> None:
    log = a_log(copier)
    log.append(batches(0, 5, 6), 10)
    assert log.finish(10).cleaner_offset == 6


def test_a_second_attempt_leaves_nothing_of_the_first(copier: Copier, tmp_path: Path) -> None:
    first = a_log(copier)
    first.append(batches(0), 5)
    first.close()
    second = a_log(copier, 3)
    second.append(batches(3), 5)
    second.finish(4)
    assert sorted(files(tmp_path)) == [f"{3:020d}.log"]
    assert f"{LOGS}/orders-3/{0:020d}.log" not in copier.files


def test_transactions_are_open_until_their_markers(copier: Copier) -> None:
    log = a_log(copier)
    for offset, producer_id in enumerate((7, 8)):
        batch = a_batch(
            b"k=v",
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=2,
            base_sequence=0,
            is_transactional=True,
        )
        log.append(memoryview(batch), 9)
    assert log.open_transactions == {7: 2, 8: 2}
    marker = build_marker(
        ControlType.COMMIT, offset=2, timestamp_ms=NOW_MS, producer_id=7, producer_epoch=2, coordinator_epoch=0
    )
    log.append(memoryview(marker), 9)
    assert log.open_transactions == {8: 2}
    log.close()


def test_bytes_that_are_no_batch_are_refused(copier: Copier) -> None:
    log = a_log(copier)
    bad = bytearray(batches(0))
    bad[-1] ^= 1
    with pytest.raises(BackupError, match="orders-3: its leader sent a bad batch"):
        log.append(memoryview(bad), 5)
    log.close()
