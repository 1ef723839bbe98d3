"""Indexes that are gone or untrue are made again by a thread, while the log goes on."""

from pathlib import Path

import pytest

from lamina.errors import StorageError
from lamina.log.files import File
from lamina.log.flushing import Flusher
from lamina.log.index_rebuild import IndexesLost
from tests.log.building import LogBuilder, a_log
from tests.log.story import told_inline
from tests.log.test_flushing import ByHand, SyncedDisk


class Reads:
    """Counts the reads of log files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        pread = File.pread

        def counted(file: File, size_bytes: int, position: int) -> bytes:
            self.count += file.path.endswith(".log")
            return pread(file, size_bytes, position)

        monkeypatch.setattr(File, "pread", counted)


def served(tmp_path: Path, batches: int = 300) -> tuple[LogBuilder, SyncedDisk, ByHand]:
    """A log of two segments, the first of many batches, as a broker has it after a clean start."""
    disk, hand = SyncedDisk(), ByHand()
    builder = a_log(tmp_path, disk, segment_bytes=1 << 20, index_interval_bytes=500, segment_index_bytes=4096)
    builder.append_batches(batches)
    builder.log.roll(builder.now_ms)
    builder.append_batches(3)
    builder.reopen()
    Flusher(builder.log, hand.run, told_inline())
    disk.synced.clear()
    return builder, disk, hand


def remove_indexes(builder: LogBuilder, base_offset: int = 0) -> None:
    for extension in (".index", ".timeindex"):
        builder.file(base_offset, extension).unlink()


def test_a_reader_is_asked_to_come_again_and_a_thread_does_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, disk, hand = served(tmp_path)
    remove_indexes(builder)
    reads = Reads(monkeypatch)
    for offset in (0, 200):
        with pytest.raises(IndexesLost, match=r"the indexes of .* are being made again"):
            builder.read(offset)
    assert (reads.count, disk.synced, len(hand.given)) == (0, [], 1), "nothing is read or synced where clients wait"
    hand.step()
    assert disk.synced == [f"{0:020d}.index.tmp", f"{0:020d}.timeindex.tmp"]
    assert builder.read(200) == builder.read(200)
    assert len(builder.texts()) == 303
    assert builder.log.failure is None
    assert builder.file(0, ".index").exists()


def test_an_index_without_most_of_its_entries_is_not_searched_by_reading_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, _, hand = served(tmp_path)
    with builder.file(0, ".index").open("r+b") as index:
        index.truncate(8)
    reads = Reads(monkeypatch)
    with pytest.raises(IndexesLost):
        builder.read(250)
    assert reads.count <= 2
    hand.step()
    assert len(builder.texts()) == 303


def test_an_entry_that_the_log_does_not_confirm_has_them_made_again(tmp_path: Path) -> None:
    builder, _, hand = served(tmp_path)
    builder.read(0)
    untrue = bytearray(builder.file(0, ".index").read_bytes())
    untrue[4:8] = (77).to_bytes(4, "big")
    builder.file(0, ".index").write_bytes(untrue)
    with pytest.raises(IndexesLost):
        builder.read(12)
    hand.step()
    assert len(builder.texts()) == 303


def test_what_is_appended_meanwhile_is_in_the_new_indexes(tmp_path: Path) -> None:
    builder, _, hand = served(tmp_path)
    active = builder.log.segments.active
    with pytest.raises(IndexesLost):
        active.rebuild_indexes()
    builder.append_batches(200)
    hand.step()
    assert active.indexes.offsets.last_entry.offset > 400
    builder.append_batches(200)
    assert [record.offset for record in builder.records()] == list(range(703))
    assert not builder.reopen(clean=False, recovery_point=0).truncated_bytes


def test_a_segment_that_was_cut_meanwhile_does_not_take_them(tmp_path: Path) -> None:
    builder, _, hand = served(tmp_path)
    active = builder.log.segments.active
    with pytest.raises(IndexesLost):
        active.rebuild_indexes()
    active.hide_from(0, 300)
    hand.step()
    assert active.indexes.offsets.file.count == 0


def test_a_disk_error_on_the_way_is_final(tmp_path: Path) -> None:
    builder, disk, hand = served(tmp_path)
    remove_indexes(builder)
    with pytest.raises(IndexesLost):
        builder.read(0)
    disk.error = OSError(5, "Input/output error")
    hand.step()
    with pytest.raises(StorageError, match="topic-0 is offline"):
        builder.read(0)


def test_a_partition_that_is_gone_by_then_is_no_error(tmp_path: Path) -> None:
    builder, _, hand = served(tmp_path)
    remove_indexes(builder)
    with pytest.raises(IndexesLost):
        builder.read(0)
    builder.log.close()
    builder.path.rename(tmp_path / "gone")
    hand.step()
    assert builder.log.failure is None
