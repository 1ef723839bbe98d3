"""One segment: its files, its indexes, its leases."""

import os
from pathlib import Path
from random import Random

import pytest

from lamina.errors import CorruptMessage
from lamina.log.files import Disk
from lamina.log.positions import find, lease_batches, position_of
from lamina.log.segment import Segment
from lamina.log.segment_end import count_tail, cut_indexes
from lamina.records.batch import read_header
from tests.log.building import NOW_MS, SMALL, a_batch, shape_of


def a_segment(path: Path, batches: int = 0, base_offset: int = 100, **fields: int) -> Segment:
    segment = Segment.create(Disk(), str(path), base_offset, shape_of(SMALL), NOW_MS)
    for number in range(batches):
        add(segment, base_offset + number, timestamp=NOW_MS + number)
    return segment


def cut(segment: Segment, offset: int) -> None:
    """As a truncation does, in its order."""
    segment.hide_from(position_of(segment, offset), offset)
    segment.cut_file()
    cut_indexes(segment, offset)


def add(segment: Segment, base_offset: int, timestamp: int = NOW_MS, value: bytes = b"k=" + b"v" * 30) -> bytes:
    batch = a_batch(value, base_offset=base_offset, timestamp=timestamp)
    header = read_header(batch)
    segment.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
    return bytes(batch)


def loaded(path: Path, base_offset: int = 100) -> Segment:
    """As a start finds it, its end not known yet."""
    size_bytes = (path / f"{base_offset:020d}.log").stat().st_size
    return Segment.load(
        Disk(), str(path), base_offset, shape_of(SMALL), size_bytes=size_bytes, modified_ms=NOW_MS, has_aborted=False
    )


def index_bytes(path: Path, base_offset: int = 100) -> tuple[bytes, bytes]:
    stem = path / f"{base_offset:020d}"
    return stem.with_suffix(".index").read_bytes(), stem.with_suffix(".timeindex").read_bytes()


def test_a_new_segment_has_its_log_and_two_preallocated_indexes(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    sizes = {entry.name: entry.stat().st_size for entry in tmp_path.iterdir()}
    assert sizes == {f"{100:020d}.log": 0, f"{100:020d}.index": 1200, f"{100:020d}.timeindex": 1200}
    segment.close()


def test_sealing_trims_the_indexes_and_forces_the_last_time_entry(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, batches=8)
    size_bytes = segment.size_bytes // 8
    segment.seal()
    offsets, times = index_bytes(tmp_path)
    # An entry is due once more than 200 bytes were written since the last one: at the third batch after it.
    due = [number for number in range(8) if number and number % 3 == 0] if size_bytes * 2 <= 200 else None
    assert due is not None
    assert offsets == b"".join(n.to_bytes(4, "big") + (n * size_bytes).to_bytes(4, "big") for n in due)
    assert times == b"".join((NOW_MS + n).to_bytes(8, "big") + n.to_bytes(4, "big") for n in [*due, 7])


def test_a_rebuilt_index_is_the_one_that_was_written(tmp_path: Path) -> None:
    a_segment(tmp_path, batches=20).seal()
    before = index_bytes(tmp_path)
    for extension in (".index", ".timeindex"):
        (tmp_path / f"{100:020d}{extension}").unlink()
        segment = loaded(tmp_path)
        found = find(segment, 110)
        assert found is not None
        assert found[1].base_offset == 110
        segment.close()
        assert index_bytes(tmp_path) == before


def test_appending_goes_on_after_a_clean_start_as_if_there_had_been_none(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for path in (whole, parts):
        path.mkdir()
    a_segment(whole, batches=20).seal()
    a_segment(parts, batches=11).seal()
    segment = loaded(parts)
    count_tail(segment)
    for number in range(11, 20):
        add(segment, 100 + number, NOW_MS + number)
    segment.seal()
    assert index_bytes(parts)[0] == index_bytes(whole)[0]


def test_appending_goes_on_after_a_rebuild_as_if_there_had_been_none(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for path in (whole, parts):
        path.mkdir()
    a_segment(whole, batches=20).seal()
    a_segment(parts, batches=11).seal()
    (parts / f"{100:020d}.index").unlink()
    segment = loaded(parts)
    count_tail(segment)
    for number in range(11, 20):
        add(segment, 100 + number, NOW_MS + number)
    segment.seal()
    assert index_bytes(parts)[0] == index_bytes(whole)[0]


def test_the_first_batch_that_reaches_an_offset_is_found(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    for base_offset in (100, 110, 120):
        batch = a_batch(b"a=1", b"b=2", base_offset=base_offset)
        header = read_header(batch)
        segment.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
    found = {offset: find(segment, offset) for offset in range(98, 125)}
    expected = {offset: 100 if offset < 102 else 110 if offset < 112 else 120 for offset in range(98, 122)}
    assert {offset: hit[1].base_offset for offset, hit in found.items() if hit is not None} == expected
    segment.close()


@pytest.mark.parametrize("damage", ["unlink", "garble"])
def test_an_index_that_goes_bad_while_the_log_is_open_is_healed(tmp_path: Path, damage: str) -> None:
    a_segment(tmp_path, batches=20).seal()
    segment = loaded(tmp_path)
    segment.next_offset = 120
    assert segment.largest_timestamp().timestamp == NOW_MS + 19
    for extension in (".index", ".timeindex"):
        path = tmp_path / f"{100:020d}{extension}"
        if damage == "unlink":
            path.unlink()
        else:
            path.write_bytes(Random(7).randbytes(path.stat().st_size))
    for offset in range(100, 120):
        found = find(segment, offset)
        assert found is not None
        assert found[1].base_offset == offset
    segment.close()


def test_a_time_index_that_lost_its_last_entries_is_made_again(tmp_path: Path) -> None:
    a_segment(tmp_path, batches=20).seal()
    before = index_bytes(tmp_path)
    path = tmp_path / f"{100:020d}.timeindex"
    for lost in range(1, len(before[1]) // 12):
        path.write_bytes(before[1][: -12 * lost])
        segment = loaded(tmp_path)
        assert segment.largest_timestamp() == (NOW_MS + 19, 119)
        segment.close()
        assert index_bytes(tmp_path) == before


def test_a_segment_whose_indexes_are_gone_is_truncated_all_the_same(tmp_path: Path) -> None:
    a_segment(tmp_path, batches=20).seal()
    for offset in (120, 115, 110):
        segment = loaded(tmp_path)
        segment.next_offset = 120
        assert segment.largest_timestamp().timestamp >= NOW_MS
        for extension in (".index", ".timeindex"):
            (tmp_path / f"{100:020d}{extension}").unlink()
        cut(segment, offset)
        assert segment.next_offset == offset
        segment.seal()
    assert find(segment, 109) is not None


@pytest.mark.parametrize("end", range(101, 121))
def test_truncating_leaves_what_was_there_before(tmp_path: Path, end: int) -> None:
    kept, cut_down = tmp_path / "kept", tmp_path / "cut"
    for path in (kept, cut_down):
        path.mkdir()
    a_segment(kept, batches=end - 100).seal()
    segment = a_segment(cut_down, batches=20)
    cut(segment, end)
    assert (segment.next_offset, segment.largest_timestamp()) == (end, (NOW_MS + end - 101, end - 1))
    segment.seal()
    assert index_bytes(cut_down) == index_bytes(kept)
    assert (cut_down / f"{100:020d}.log").read_bytes() == (kept / f"{100:020d}.log").read_bytes()


def test_a_lease_outlives_the_segment(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    batch = add(segment, 100)
    lease = segment.lease(0, segment.size_bytes)
    segment.rename(".deleted")
    segment.close()
    for path in segment.paths():
        os.unlink(path)
    assert lease.read() == batch
    fd = lease.file.fd
    lease.give_back()
    lease.give_back()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_sendfile_takes_a_lease(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, batches=3)
    size_bytes = segment.size_bytes // 3
    target = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    with segment.lease(size_bytes, size_bytes) as lease:
        assert os.sendfile(target, lease.file.fileno(), lease.position, lease.size_bytes) == size_bytes
        assert os.pread(target, size_bytes, 0) == lease.read()
    os.close(target)
    segment.close()


def test_headers_stop_at_what_cannot_be_a_batch(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, batches=2)
    size_bytes = segment.size_bytes
    segment.close()
    path = tmp_path / f"{100:020d}.log"
    for tail in (b"\0" * 61, b"\0" * 10, path.read_bytes()[:70]):
        path.write_bytes(path.read_bytes()[:size_bytes] + tail)
        headers = loaded(tmp_path).headers(0, size_bytes + len(tail))
        assert [next(headers)[1].base_offset, next(headers)[1].base_offset] == [100, 101]
        with pytest.raises(CorruptMessage):
            next(headers)


def test_a_batch_larger_than_one_read_is_passed_over(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    for number in range(3):
        add(segment, 100 + number, value=b"k=" + b"v" * 40_000)
    assert [header.base_offset for _, header in segment.headers(0, segment.size_bytes)] == [100, 101, 102]
    segment.close()


def test_age_is_the_largest_timestamp_or_the_files_where_there_is_none(tmp_path: Path) -> None:
    """Fact 16."""
    segment = a_segment(tmp_path)
    add(segment, 100, timestamp=-1)
    assert segment.age_timestamp_ms() == NOW_MS
    add(segment, 101, timestamp=5)
    assert segment.age_timestamp_ms() == 5
    segment.close()


def test_renaming_moves_every_file_and_forgives_a_missing_index(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, batches=1)
    segment.seal()
    (tmp_path / f"{100:020d}.index").unlink()
    segment.rename(".deleted")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        f"{100:020d}.log.deleted",
        f"{100:020d}.timeindex.deleted",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_last_batch_is_found_without_indexes_where_they_would_find_it(tmp_path: Path, seed: int) -> None:
    """Batches of several sizes with gaps between them, the end cut now and then."""
    random, segment, end = Random(seed), a_segment(tmp_path), 100
    for _ in range(30):
        end += random.choice((0, 0, 1, 5))
        values = [b"k=%d" % number for number in range(random.randint(1, 3))]
        batch = a_batch(*values, base_offset=end)
        header = read_header(batch)
        segment.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
        end = header.next_offset
        if random.random() < 0.1:
            cut(segment, random.randrange(100, end))
            end = segment.next_offset
        bounds = [(offset, bound) for offset in range(end - 8, end + 2) for bound in range(offset, end + 2)]
        asked = [(max(offset, 100), bound, limit) for offset, bound in bounds for limit in (0, 100, 10_000)]
        short, tail, segment.tail = leases(segment, asked), segment.tail, None
        assert leases(segment, asked) == short
        segment.tail = tail
    segment.close()


def leases(segment: Segment, asked: list[tuple[int, int, int]]) -> list[tuple[int, int] | None]:
    """Position and size of what is lent for each offset, bound and limit."""
    found: list[tuple[int, int] | None] = []
    for offset, bound, limit in asked:
        lease = lease_batches(segment, offset, limit, bound)
        found.append(None if lease is None else (lease.position, lease.size_bytes))
        if lease is not None:
            lease.give_back()
    return found
