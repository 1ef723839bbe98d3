"""A log that follows from arithmetic: what is written, and that no other than the right remainder passes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.known_log import KEY_PREFIX, KnownLog, Survivors, WrongLog, check_survivors, write_segments
from lamina.records.batch import read_header
from lamina.records.record import Record, build_batch, read_records

LOGS = [KnownLog.of(1000, copies=2, value_bytes=10), KnownLog.of(100, copies=10, value_bytes=1000)]
SEGMENT_BYTES = 40_000


def ignore(_size_bytes: int) -> None:
    """For tests that are not about progress."""


def newest_by_reading(log: KnownLog) -> dict[int, int]:
    """The last offset of every key, the slow way."""
    offsets = np.arange(log.records, dtype=np.uint64)
    return dict(zip(log.keys_at(offsets).tolist(), offsets.tolist(), strict=True))


def records_in(directory: Path) -> list[Record]:
    found: list[Record] = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        assert not data or read_header(data).base_offset == int(path.stem)
        while position < len(data):
            header = read_header(data[position:])
            found += read_records(data, position, header, len(data))
            position += header.size_bytes
    return found


def check_kept(log: KnownLog, directory: Path, keeps: Callable[[Record], bool]) -> Survivors:
    """As if a pass had kept these records, one in a batch."""
    write_segments(log, directory, SEGMENT_BYTES, ignore)
    kept = [record for record in records_in(directory) if keeps(record)]
    for path in directory.glob("*.log"):
        path.unlink()
    (directory / f"{0:020d}.log").write_bytes(b"".join(build_batch([record], leader_epoch=0) for record in kept))
    return check_survivors(log, directory, ignore)


@pytest.mark.parametrize("log", LOGS)
def test_every_key_is_written_equally_often_and_arithmetic_knows_its_last_offset(log: KnownLog) -> None:
    offsets = np.arange(log.records, dtype=np.uint64)
    counts = np.unique(log.keys_at(offsets), return_counts=True)[1]
    assert counts.tolist() == [log.copies] * log.keys
    newest = newest_by_reading(log)
    assert log.newest(offsets).tolist() == [newest[key] for key in log.keys_at(offsets).tolist()]


@pytest.mark.parametrize("log", LOGS)
def test_segments_hold_all_records_and_an_empty_active_one_follows(log: KnownLog, tmp_path: Path) -> None:
    size_bytes = write_segments(log, tmp_path, SEGMENT_BYTES, ignore)
    paths = sorted(tmp_path.glob("*.log"))
    assert sum(path.stat().st_size for path in paths) == size_bytes
    assert (int(paths[-1].stem), paths[-1].stat().st_size) == (log.records, 0)
    records = records_in(tmp_path)
    assert [record.offset for record in records] == list(range(log.records))
    keys = log.keys_at(np.arange(log.records, dtype=np.uint64)).tolist()
    for record in records:
        assert record.key == KEY_PREFIX + keys[record.offset].to_bytes(8, "big")
        assert record.value == record.offset.to_bytes(8, "big") + log.value


@pytest.mark.parametrize("log", LOGS)
def test_the_last_record_of_every_key_passes_and_nothing_else_does(log: KnownLog, tmp_path: Path) -> None:
    newest = set(newest_by_reading(log).values())
    assert check_kept(log, tmp_path, lambda record: record.offset in newest).records == log.keys
    with pytest.raises(WrongLog, match="superseded"):
        check_kept(log, tmp_path, lambda _: True)
    with pytest.raises(WrongLog, match=f"{log.keys - 1:,} records are left"):
        check_kept(log, tmp_path, lambda record: record.offset in newest and record.offset != max(newest))


def test_a_record_that_was_changed_does_not_pass(tmp_path: Path) -> None:
    log = LOGS[0]
    write_segments(log, tmp_path, SEGMENT_BYTES, ignore)
    path = min(tmp_path.glob("*.log"))
    records = records_in(tmp_path)[:1]
    path.write_bytes(build_batch([Record(0, records[0].timestamp, records[0].key, bytes(10))], leader_epoch=0))
    with pytest.raises(WrongLog, match="never written"):
        check_survivors(log, tmp_path, ignore)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(WrongLog, match="CRC"):
        check_survivors(log, tmp_path, ignore)
