"""Opening a log: what a clean start reads, and what an unclean one checks, cuts and makes again."""

from pathlib import Path
from random import Random

import pytest

from lamina.errors import CorruptMessage
from lamina.log.epochs import EpochStart, parse_epochs
from lamina.log.files import Disk, File
from lamina.log.flushing import flush
from lamina.log.snapshots import snapshot_offsets
from lamina.log.steps import run_steps
from lamina.records.batch import read_header
from lamina.settings.log_config import DAY_MS
from tests.log.building import LogBuilder, a_log, truncate_log
from tests.log.test_flushing import SyncedDisk
from tests.records.forgery import reseal


class CountingDisk(Disk):
    """Remembers what is read of every ``.log`` file."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, int, int]] = []

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return CountingFile(self, path, super().open(path, write=write, create=create).fd)


class CountingFile(File):
    def __init__(self, disk: CountingDisk, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self.disk = disk

    def pread(self, size_bytes: int, position: int) -> bytes:
        if self.path.endswith(".log"):
            self.disk.reads.append((self.path.rpartition("/")[2], position, size_bytes))
        return super().pread(size_bytes, position)


def written(tmp_path: Path, batches: int = 30, disk: Disk | None = None, **settings: int | bool) -> LogBuilder:
    builder = a_log(tmp_path, disk, **settings)
    builder.append_batches(batches, producer_id=-1)
    return builder


def offsets(builder: LogBuilder) -> list[int]:
    return [record.offset for record in builder.records()]


def test_a_clean_start_reads_only_headers_after_the_last_index_entry(tmp_path: Path) -> None:
    disk = CountingDisk()
    builder = a_log(tmp_path, disk, segment_bytes=2_000_000, index_interval_bytes=50_000)
    for _ in range(25):
        builder.append(b"k=" + b"v" * 30_000)
    builder.log.roll(builder.now_ms)
    for _ in range(25):
        builder.append(b"k=" + b"v" * 30_000)
    active = builder.log.segments.active
    last_entry = active.indexes.offsets.last_entry.position
    assert last_entry > 600_000
    disk.reads.clear()
    builder.reopen()
    name = f"{25:020d}.log"
    assert {read[0] for read in disk.reads} == {name}
    # The very first header tells the age of the segment; everything else lies behind the last entry.
    assert [read for read in disk.reads if read[1] < last_entry] == [(name, 0, 61)]
    assert sum(size_bytes for _, _, size_bytes in disk.reads) < 150_000
    assert builder.log.log_end_offset == 50


def test_a_clean_start_of_a_log_rolled_just_now_reads_no_log_at_all(tmp_path: Path) -> None:
    disk = CountingDisk()
    builder = written(tmp_path, 10, disk)
    builder.log.roll(builder.now_ms)
    disk.reads.clear()
    builder.reopen()
    assert disk.reads == []
    assert builder.log.log_end_offset == 10


@pytest.mark.parametrize("flushed", [0, 3, 10, 20, 30])
def test_an_unclean_start_checks_from_the_segment_of_the_recovery_point_on(tmp_path: Path, flushed: int) -> None:
    builder = written(tmp_path, segment_bytes=500)
    bases = builder.bases()
    report = builder.reopen(clean=False, recovery_point=flushed)
    first = max(base for base in bases if base <= flushed)
    assert report.recovered_bytes == sum(
        segment.size_bytes for segment in builder.log.segments if segment.base_offset >= first
    )
    assert (report.reason, offsets(builder)) == (None, list(range(30)))
    assert builder.log.recovery_point == flushed


def test_the_first_bad_batch_cuts_the_log_and_later_segments_go(tmp_path: Path) -> None:
    """Fact 86."""
    builder = written(tmp_path, segment_bytes=500)
    second, third = builder.bases()[1:3]
    path = builder.file(second, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    later = len(builder.bases()) - 2
    path.write_bytes(data)
    report = builder.reopen(clean=False, recovery_point=0)
    assert report.removed_segments == later
    assert report.reason is not None
    assert "CRC" in report.reason
    assert (offsets(builder), builder.bases()) == (list(range(third - 1)), [0, second])
    assert path.stat().st_size < len(data)
    assert builder.append(b"k=v").first_offset == third - 1
    builder.reopen()
    assert offsets(builder) == list(range(third))


def test_damage_below_the_recovery_point_is_not_looked_for(tmp_path: Path) -> None:
    builder = written(tmp_path, segment_bytes=500)
    path = builder.file(0, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert builder.reopen(clean=False, recovery_point=30).reason is None
    assert [header.base_offset for header, _ in builder.batches()] == list(range(30))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damaged", [b"\xff", b"\x00"])
def test_damage_below_the_recovery_point_does_not_keep_a_log_from_being_opened(
    tmp_path: Path, clean: bool, damaged: bytes
) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    producer = {"producer_id": 1, "producer_epoch": 0, "is_transactional": True}
    for number in range(12):
        builder.append(b"k=v", epoch=number // 3, base_sequence=number, **producer)
    builder.abort(1)
    flush(builder.log)
    builder.reopen()
    builder.log.close()
    first = builder.bases()[1]
    data = bytearray(builder.file(first, ".log").read_bytes())
    data[16:17] = damaged
    builder.file(first, ".log").write_bytes(data)
    # What would spare the opening a look at that segment is gone too.
    builder.file(first, ".txnindex").write_bytes(b"torn")
    (builder.path / "leader-epoch-checkpoint").unlink()
    for snapshot in builder.path.glob("*.snapshot"):
        snapshot.unlink()
    builder.log, report = builder._open(clean=clean, recovery_point=13, log_start_offset=0)
    assert report.reason is None
    assert builder.log.log_end_offset == 13
    assert builder.append(b"k=v", epoch=9).first_offset == 13
    assert builder.read(0)[:8] == bytes(8)
    with pytest.raises(CorruptMessage):
        builder.read(first)


@pytest.mark.parametrize("cut", [1, 30, 60, 61, 70])
def test_a_torn_last_batch_is_cut_off(tmp_path: Path, cut: int) -> None:
    builder = written(tmp_path, 3)
    path = builder.file(0, ".log")
    path.write_bytes(path.read_bytes()[:-cut])
    report = builder.reopen(clean=False)
    assert (report.truncated_bytes > 0, offsets(builder)) == (True, [0, 1])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("clean", [True, False])
def test_indexes_that_are_missing_short_or_nonsense_are_made_again(tmp_path: Path, seed: int, clean: bool) -> None:
    """Fact 86."""
    random = Random(seed)
    builder = written(tmp_path, segment_bytes=500)
    flush(builder.log)
    builder.reopen()
    builder.log.close()
    for path in builder.path.iterdir():
        if path.suffix in (".index", ".timeindex"):
            size_bytes = path.stat().st_size
            kind = random.randrange(4)
            if kind == 0:
                path.unlink()
            elif kind == 1:
                path.write_bytes(path.read_bytes()[: size_bytes // 2])
            else:
                path.write_bytes(random.randbytes(size_bytes))
    builder.reopen(clean=clean)
    for offset in range(30):
        assert builder.read(offset, 1)[:8] == offset.to_bytes(8, "big")
    assert builder.append(b"k=v").first_offset == 30
    builder.reopen()
    assert offsets(builder) == list(range(31))


def test_a_clean_start_whose_last_batch_was_torn_by_somebody_recovers(tmp_path: Path) -> None:
    builder = written(tmp_path, 3)
    builder.reopen()
    builder.log.close()
    path = builder.file(0, ".log")
    path.write_bytes(path.read_bytes()[:-5])
    builder.log, report = builder._open(clean=True, recovery_point=3, log_start_offset=0)
    assert report.reason is not None
    assert (offsets(builder), builder.log.log_end_offset, builder.log.recovery_point) == ([0, 1], 2, 2)


@pytest.mark.parametrize("claimed", [2**31, 2**40, 2**63 - 1])
def test_a_clean_start_whose_last_batch_claims_an_offset_far_away_recovers(tmp_path: Path, claimed: int) -> None:
    builder = written(tmp_path, 3)
    builder.reopen()
    builder.log.close()
    path = builder.file(0, ".log")
    data = path.read_bytes()
    at = len(data) * 2 // 3
    path.write_bytes(data[:at] + claimed.to_bytes(8, "big") + data[at + 8 :])
    for extension in (".index", ".timeindex"):
        builder.file(0, extension).unlink()
    builder.log, report = builder._open(clean=True, recovery_point=3, log_start_offset=0)
    assert report.reason is not None
    assert (offsets(builder), builder.log.log_end_offset) == ([0, 1], 2)


def test_leader_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    for number in range(10):
        builder.append(b"k=v", epoch=number // 3)
    expected = [EpochStart(0, 0), EpochStart(1, 3), EpochStart(2, 6), EpochStart(3, 9)]
    for text in (None, "0\n1\n0 0\n", "nonsense"):
        path = builder.path / "leader-epoch-checkpoint"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)
        builder.reopen(clean=False, recovery_point=0)
        assert builder.log.epochs.entries == expected


def test_leader_epochs_that_were_not_written_yet_come_back_from_the_batches_above_the_recovery_point(
    tmp_path: Path,
) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    checkpoint = builder.path / "leader-epoch-checkpoint"
    for number in range(4):
        builder.append(b"k=v", epoch=number // 2)
    flush(builder.log)
    flushed = checkpoint.read_bytes()
    assert flushed == b"0\n2\n0 0\n1 2\n"
    for number in range(4, 10):
        builder.append(b"k=v", epoch=number // 2)
    expected = [EpochStart(number // 2, number) for number in range(0, 10, 2)]
    for _ in range(2):
        builder.reopen(clean=False)
        assert checkpoint.read_bytes() == flushed, "nobody has waited for it"
        assert builder.log.epochs.entries == expected
    builder.log.begin_epoch(9)
    builder.reopen(clean=False)
    assert builder.log.epochs.entries == expected, "an epoch without batches is forgotten"
    flush(builder.log)
    builder.reopen(clean=False)
    assert builder.log.epochs.entries == expected
    assert parse_epochs(checkpoint.read_bytes()) == expected


def test_a_checkpoint_that_does_not_tell_of_flushed_batches_is_written_again_by_the_recovery(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    for number in range(10):
        builder.append(b"k=v", epoch=number // 2)
    flush(builder.log)
    checkpoint, active = builder.path / "leader-epoch-checkpoint", builder.bases()[-1]
    checkpoint.write_text("torn")
    builder.reopen(clean=False)
    assert len(builder.log.epochs.entries) == 5
    assert parse_epochs(checkpoint.read_bytes()) == [each for each in builder.log.epochs.entries if each[1] < active]


@pytest.mark.parametrize("clean", [True, False])
def test_no_epoch_that_was_cut_off_while_the_checkpoint_was_behind_comes_back(tmp_path: Path, clean: bool) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    for number in range(6):
        builder.append(b"k=v", epoch=number // 2)
    builder.log.epochs.save()
    truncate_log(builder.log, 3, builder.now_ms)
    builder.append(b"k=v", epoch=7)
    builder.append(b"k=v", epoch=7)
    expected = [EpochStart(0, 0), EpochStart(1, 2), EpochStart(7, 3)]
    builder.reopen(clean=clean)
    assert builder.log.epochs.entries == expected


def test_the_log_start_that_leader_epochs_were_not_cut_to_on_disk_cuts_them_again(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    for number in range(6):
        builder.append(b"k=v", epoch=number // 2)
    flush(builder.log)
    builder.log.advance_log_start(3)
    builder.reopen(clean=False)
    assert builder.log.epochs.entries == [EpochStart(1, 3), EpochStart(2, 4)]


def test_a_recovery_that_finds_nothing_wrong_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    """A broker that was killed opens thousands of logs: several syncs each would take minutes."""
    disk = SyncedDisk()
    builder = a_log(tmp_path, disk)
    for number in range(10):
        builder.append(b"k=v", epoch=number // 3)
    builder.stop(clean=False)
    disk.synced.clear()
    builder.start(clean=False, recovery_point=0)
    assert disk.synced == []
    assert len(builder.log.epochs.entries) == 4
    # What is written on is synced by its flush, the epochs with it.
    flush(builder.log)
    assert "leader-epoch-checkpoint" in {Path(path).name for path in disk.synced}


@pytest.mark.parametrize("clean", [True, False])
def test_a_stale_or_bad_snapshot_is_passed_over(tmp_path: Path, clean: bool) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    for number in range(12):
        builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=number)
    flush(builder.log)
    bases = builder.bases()
    builder.file(bases[-1], ".snapshot").write_bytes(b"nonsense")
    builder.file(bases[-2], ".snapshot").write_bytes(builder.file(bases[1], ".snapshot").read_bytes()[:-1])
    builder.file(5000, ".snapshot").write_bytes(builder.file(bases[1], ".snapshot").read_bytes())
    builder.reopen(clean=clean)
    assert builder.log.producers.producers[1].last_sequence == 11
    assert 5000 not in snapshot_offsets(builder.disk, str(builder.path))
    duplicate = builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=11)
    assert (duplicate.is_duplicate, duplicate.first_offset) == (True, 11)


def test_there_is_a_snapshot_for_each_segment_but_the_first_and_one_at_the_end(tmp_path: Path) -> None:
    """formats.md §2.4."""
    builder = written(tmp_path, segment_bytes=500)
    builder.reopen()
    assert snapshot_offsets(builder.disk, str(builder.path)) == [*builder.bases()[1:], 30]
    builder.reopen(clean=False, recovery_point=0)
    assert snapshot_offsets(builder.disk, str(builder.path)) == builder.bases()[1:]


def test_transactions_and_aborts_come_back_from_the_batches(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=400)
    for number in range(4):
        for producer_id in (1, 2):
            builder.append(
                b"k=v", producer_id=producer_id, producer_epoch=0, base_sequence=number, is_transactional=True
            )
        builder.abort(1)
    expected = builder.log.segments.aborted_between(0, 100)
    files = {path.name: path.read_bytes() for path in builder.path.glob("*.txnindex")}
    assert len(files) > 1
    for path in builder.path.glob("*.txnindex"):
        path.write_bytes(b"nonsense")
    builder.reopen(clean=False, recovery_point=0)
    assert builder.log.segments.aborted_between(0, 100) == expected
    assert {path.name: path.read_bytes() for path in builder.path.glob("*.txnindex")} == files
    assert builder.log.producers.first_unstable_offset() == 1


def test_a_marker_in_a_codec_that_nobody_has_ends_the_log(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.abort(1)
    builder.log.close()
    path = builder.file(0, ".log")
    data = path.read_bytes()
    at = read_header(data).size_bytes
    path.write_bytes(data[:at] + reseal(data[at:], attributes=0x37))
    builder.log, report = builder._open(clean=False, recovery_point=0, log_start_offset=0)
    assert report.reason is not None
    assert "no codec has id 7" in report.reason
    assert builder.log.log_end_offset == 1


def test_silent_producers_are_forgotten_at_a_start(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=0)
    builder.now_ms += DAY_MS - 1
    builder.reopen()
    assert 1 in builder.log.producers.producers
    builder.now_ms += 1
    builder.reopen()
    assert builder.log.producers.producers == {}


def one_batch_each(builder: LogBuilder, producers: int) -> dict[int, int]:
    """Producers that write one batch of three records each. Returns where each of them ends."""
    return {
        number: builder.append(
            b"a=1", b"b=2", b"c=3", producer_id=number, producer_epoch=0, base_sequence=0
        ).last_offset
        for number in range(producers)
    }


def ends_of_producers(builder: LogBuilder) -> dict[int, int]:
    return {number: producer.last_data_offset for number, producer in builder.log.producers.producers.items()}


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_forgets_no_producer_whose_records_are_deleted_and_still_there(tmp_path: Path, *, clean: bool) -> None:
    """Wherever the log starts, inside of a batch too, and however far a follower lags behind its own log."""
    builder = a_log(tmp_path, segment_bytes=300)
    ends = one_batch_each(builder, 12)
    assert len(builder.bases()) > 3
    end = builder.log.log_end_offset
    for log_start in range(end + 1):
        for high_watermark in {log_start, (log_start + end) // 2}:
            builder.stop(clean=clean)
            builder.start(clean=clean, recovery_point=end, log_start_offset=log_start, high_watermark=high_watermark)
            assert ends_of_producers(builder) == ends, (log_start, high_watermark)
    assert builder.append(b"d=4", producer_id=11, producer_epoch=0, base_sequence=3).first_offset == end


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_forgets_no_producer_whose_segments_went_above_the_high_watermark_that_was_written_down(
    tmp_path: Path, *, clean: bool
) -> None:
    """They went below the real one: what the snapshot at the first segment tells is replicated."""
    builder = a_log(tmp_path, segment_bytes=500)
    ends = one_batch_each(builder, 12)
    flush(builder.log)
    for _ in range(2):
        run_steps(builder.log.delete_oldest(builder.log.segments.first, builder.now_ms))
    first = builder.bases()[0]
    for log_start in (first, first + 4):
        builder.stop(clean=clean)
        builder.start(clean=clean, log_start_offset=log_start, high_watermark=2)
        assert ends_of_producers(builder) == ends
        assert builder.log.checkpointed_high_watermark == log_start


def test_silent_producers_are_forgotten_unless_their_records_are_still_there(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    ends = one_batch_each(builder, 2)
    builder.log.roll(builder.now_ms)
    ends |= {2: builder.append(b"k=v", producer_id=2, producer_epoch=0, base_sequence=0).last_offset}
    builder.append(b"k=v")
    builder.log.advance_log_start(7)
    builder.stop()
    builder.now_ms += DAY_MS
    builder.start(high_watermark=7)
    assert ends_of_producers(builder) == {2: ends[2]}


@pytest.mark.parametrize("high_watermark", [1, 5])
@pytest.mark.parametrize("clean", [True, False])
def test_a_transaction_that_began_in_deleted_records_is_still_open(
    tmp_path: Path, *, clean: bool, high_watermark: int
) -> None:
    """One that ended there is not, whatever high watermark was written down."""
    builder = a_log(tmp_path)
    for producer_id in (1, 2):
        builder.append(b"a=1", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        builder.append(b"k=v")
        if producer_id == 1:
            builder.commit(1)
    builder.log.roll(builder.now_ms)
    builder.append(b"k=v")
    builder.log.advance_log_start(5)
    builder.stop(clean=clean)
    builder.start(clean=clean, recovery_point=6, high_watermark=high_watermark)
    assert builder.log.producers.first_unstable_offset() == 3
    builder.abort(2)
    assert [tuple(entry) for entry in builder.log.segments.aborted_between(5, 10)] == [(2, 3, 6, 7)]


def test_an_index_of_aborts_that_is_made_again_knows_what_began_in_deleted_records(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    for number in range(3):
        builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=number, is_transactional=True)
    builder.log.roll(builder.now_ms)
    builder.abort(1)
    index = builder.file(3, ".txnindex")
    expected = index.read_bytes()
    builder.log.advance_log_start(2)
    builder.stop()
    index.write_bytes(b"nonsense")
    builder.file(3, ".snapshot").unlink()
    builder.start()
    assert index.read_bytes() == expected


def test_a_log_that_ends_below_its_start_is_begun_anew(tmp_path: Path) -> None:
    """Fact 87."""
    builder = a_log(tmp_path)
    for number in range(5):
        builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=number, is_transactional=True)
    for clean in (True, False):
        builder.stop(clean=clean)
        builder.start(clean=clean, log_start_offset=builder.log.log_end_offset + 10)
        start = builder.log.log_start_offset
        assert (builder.log.log_end_offset, builder.bases()) == (start, [start])
        assert builder.log.producers.first_unstable_offset() is None
        assert builder.log.epochs.entries == []
        builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=9, is_transactional=True)


def test_the_log_start_is_at_least_the_first_segments_base(tmp_path: Path) -> None:
    builder = written(tmp_path, segment_bytes=500)
    builder.log.advance_log_start(7)
    builder.reopen(clean=False)
    assert (builder.log.log_start_offset, offsets(builder)[0]) == (7, 7)
    first = builder.log.segments.first
    second = builder.bases()[1]
    builder.log.close()
    for path in first.paths():
        Path(path).unlink()
    builder.log, _ = builder._open(clean=True, recovery_point=0, log_start_offset=0)
    assert builder.log.log_start_offset == second


@pytest.mark.parametrize("clean", [True, False])
def test_a_preallocated_segment_is_as_large_as_it_may_become_until_it_closes(tmp_path: Path, clean: bool) -> None:
    builder = a_log(tmp_path, preallocate=True)
    assert builder.file(0, ".log").stat().st_size == 1000
    builder.append_batches(20)
    bases = builder.bases()
    assert len(bases) == 2
    for segment in builder.log.segments:
        expected = 1000 if segment is builder.log.segments.active else segment.size_bytes
        assert Path(segment.path()).stat().st_size == expected
    assert offsets(builder) == list(range(20))
    report = builder.reopen(clean=clean)
    assert bool(report.truncated_bytes) is not clean
    active = builder.log.segments.active
    assert Path(active.path()).stat().st_size == active.size_bytes
    assert (offsets(builder), builder.bases()) == (list(range(20)), bases)
    assert builder.append(b"k=v").first_offset == 20
    # A segment that was loaded is not preallocated again.
    assert Path(active.path()).stat().st_size == active.size_bytes
    builder.log.roll(builder.now_ms)
    assert builder.file(21, ".log").stat().st_size == 1000
    builder.reopen(clean=clean)
    assert offsets(builder) == list(range(21))


@pytest.mark.parametrize("damage", [None, b"0\n1\nnonsense\n", b""])
def test_leader_epochs_are_read_from_the_batches_when_their_checkpoint_is_gone(
    tmp_path: Path, damage: bytes | None
) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1", epoch=3)
    builder.append(b"b=2", epoch=5)
    known = list(builder.log.epochs.entries)
    builder.reopen(clean=True)
    checkpoint = builder.path / "leader-epoch-checkpoint"
    if damage is None:
        checkpoint.unlink()
    else:
        checkpoint.write_bytes(damage)
    builder.log.close()
    builder.log, _ = builder._open(clean=True, recovery_point=2, log_start_offset=0)
    assert builder.log.epochs.entries == known
    assert checkpoint.read_bytes() == b"0\n2\n3 0\n5 1\n"


@pytest.mark.parametrize("clean", [True, False])
def test_a_transaction_whose_marker_lies_above_the_high_watermark_is_still_open_for_readers(
    tmp_path: Path, clean: bool
) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(b"b=2")
    builder.commit(1)
    for high_watermark, first_unstable in ((0, 0), (2, 0), (3, None), (99, None)):
        builder.stop(clean=clean)
        builder.start(clean=clean, recovery_point=0, high_watermark=high_watermark)
        assert builder.log.checkpointed_high_watermark == min(high_watermark, 3)
        assert builder.log.producers.first_unstable_offset() == first_unstable
