from pathlib import Path

from lamina.log.files import Disk
from lamina.log.index import TimeIndex
from lamina.log.segment_times import SegmentTimes, read_times


def test_the_last_entry_tells_the_largest_timestamp(tmp_path: Path) -> None:
    log, index = tmp_path / "0.log", tmp_path / "0.timeindex"
    log.write_bytes(b"")
    Disk().set_modified_ms(str(log), 1234)
    index.write_bytes(TimeIndex.ENTRY.pack(5, 1) + TimeIndex.ENTRY.pack(7, 2))
    assert read_times(Disk(), str(log), str(index)) == SegmentTimes(1234, 7)
    index.write_bytes(index.read_bytes() + b"torn")
    assert read_times(Disk(), str(log), str(index)) == SegmentTimes(1234, 7)


def test_files_that_are_gone_or_empty_tell_nothing(tmp_path: Path) -> None:
    log, index = tmp_path / "0.log", tmp_path / "0.timeindex"
    assert read_times(Disk(), str(log), str(index)) == SegmentTimes(None, None)
    log.write_bytes(b"")
    index.write_bytes(b"")
    assert read_times(Disk(), str(log), str(index)).largest_timestamp is None
    assert not list(tmp_path.glob("*.tmp"))
