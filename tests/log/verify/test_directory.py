"""What verifying a directory expects after a clean stop, after a crash, and while a broker runs."""

from pathlib import Path

import pytest

from lamina.log.files import Disk, File
from lamina.log.verify.directory import NotALogDirectory, prepare
from lamina.log.verify.findings import MAX_FINDINGS_PER_FILE, Finding, Severity
from lamina.records.batch import HEADER_BYTES, Codec, compute_crc, walk
from lamina.records.record import Record, build_batch
from tests.fixtures.kafka_data import load_fixture
from tests.log.verify.sample import files_of, findings, flip, make_directory, verified


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return make_directory(tmp_path / "data")


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    return make_directory(tmp_path / "data", cleanly=False)


def errors(found: list[Finding]) -> list[str]:
    return [finding.what for finding in found if finding.severity is Severity.ERROR]


def snapshot_of(path: Path) -> dict[Path, tuple[int, bytes]]:
    return {each: (each.stat().st_mtime_ns, each.read_bytes()) for each in path.rglob("*") if each.is_file()}


def test_a_real_kafka_directory_after_a_clean_stop_is_fine(tmp_path: Path) -> None:
    verification = verified(load_fixture(tmp_path).clean.directory)
    assert verification.findings.kept == []
    counts = verification.counts
    assert (counts.partitions, counts.segments, counts.batches, counts.records) == (16, 43, 439, 2053)


def test_a_real_kafka_directory_after_a_kill_has_only_preallocated_tails(tmp_path: Path) -> None:
    found = findings(load_fixture(tmp_path).unclean.directory)
    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert all("preallocated bytes would be cut at recovery" in finding.what for finding in found)


def test_every_partition_of_a_real_kafka_verifies_on_its_own(tmp_path: Path) -> None:
    for path in sorted(load_fixture(tmp_path).clean.directory.iterdir()):
        if path.is_dir():
            assert findings(path) == []


def test_nothing_is_written(clean: Path) -> None:
    flip(files_of(clean, "orders-0/*.snapshot")[0], 20)
    files_of(clean, "orders-0/*.index")[0].unlink()
    before = snapshot_of(clean)
    assert findings(clean)
    assert snapshot_of(clean) == before


def test_a_torn_last_batch_after_a_crash_would_be_cut_at_recovery(crashed: Path) -> None:
    active = files_of(crashed, "orders-0/*.log")[-1]
    with active.open("ab") as file:
        file.write(active.read_bytes()[:100])
    found = [finding for finding in findings(crashed) if finding.path == str(active)]
    assert [finding.severity for finding in found] == [Severity.WARNING]
    assert "would be cut at recovery" in found[0].what


def test_epochs_of_what_was_not_flushed_need_not_be_in_their_checkpoint(crashed: Path) -> None:
    checkpoint = crashed / "orders-0" / "leader-epoch-checkpoint"
    before = findings(crashed)
    checkpoint.write_bytes(b"0\n1\n0 0\n")
    assert findings(crashed) == before
    checkpoint.write_bytes(b"0\n1\n1 0\n")
    found = [finding for finding in findings(crashed) if finding not in before]
    assert found
    assert all("leader-epoch-checkpoint says 1" in finding.what for finding in found)


def test_a_torn_last_batch_after_a_clean_stop_is_an_error(clean: Path) -> None:
    active = files_of(clean, "orders-0/*.log")[-1]
    with active.open("ab") as file:
        file.write(b"torn")
    assert errors(findings(clean)) == ["the file ends after 4 bytes of a batch header"]


def test_a_bad_batch_with_good_ones_behind_it_is_an_error_even_after_a_crash(crashed: Path) -> None:
    active = files_of(crashed, "orders-0/*.log")[-1]
    flip(active, HEADER_BYTES + 3)
    (finding,) = [each for each in findings(crashed) if each.severity is Severity.ERROR]
    assert (finding.position, finding.offset) == (0, 28)
    assert finding.what.startswith("the CRC is")


def test_every_bad_batch_of_a_segment_is_named(clean: Path) -> None:
    path = files_of(clean, "orders-0/*.log")[0]
    starts = [position for position, _ in walk(path.read_bytes())]
    for start in (starts[1], starts[3], starts[4]):
        flip(path, start + HEADER_BYTES)
    assert [each.position for each in findings(clean)] == [starts[1], starts[3], starts[4]]


def test_preallocated_room_is_expected_of_a_running_broker(crashed: Path) -> None:
    assert {"preallocated" in each.what for each in findings(crashed)} == {True}
    verification = verified(crashed, lambda path: path == f"{crashed}/.lock")
    assert verification.is_running
    assert verification.findings.kept == []


def test_an_index_may_run_ahead_of_a_log_that_is_being_written(crashed: Path) -> None:
    """The log's size was taken before its indexes were read."""
    active = files_of(crashed, "orders-0/*.log")[-1]
    data = active.read_bytes()
    _, (second, _), *_ = walk(data)
    active.write_bytes(data[:second])
    in_motion = verified(crashed, lambda _path: True).findings.kept
    assert not [each for each in in_motion if each.path.endswith("index")]
    assert [each for each in findings(crashed) if f"no batch begins at position {second}" in each.what]


def test_preallocated_room_after_a_clean_stop_is_an_error(clean: Path) -> None:
    path = files_of(clean, "orders-0/*28.index")[0]
    path.write_bytes(path.read_bytes() + bytes(16))
    assert errors(findings(clean)) == ["16 preallocated bytes were not given back"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("00000000000000000014.log.deleted", "left behind"),
        ("00000000000000000014.log.cleaned", "left behind"),
        ("00000000000000000014.index.swap", "left behind"),
        ("00000000000000000099.index", "its log is not there"),
    ],
)
def test_leftovers_are_named_and_no_error(clean: Path, name: str, what: str) -> None:
    (clean / "orders-0" / name).write_bytes(b"")
    (finding,) = findings(clean)
    assert finding.severity is Severity.WARNING
    assert finding.path.endswith(name)
    assert what in finding.what


def test_partitions_set_aside_are_named(clean: Path) -> None:
    (clean / f"orders-2.{'0' * 32}-delete").mkdir()
    assert [each.severity for each in findings(clean)] == [Severity.WARNING]


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_a_missing_index_is_an_error(clean: Path, extension: str) -> None:
    files_of(clean, f"orders-0/*14.{extension}")[0].unlink()
    assert errors(findings(clean)) == ["the file is missing"]


def test_an_abort_that_no_index_names_is_an_error(clean: Path) -> None:
    """Such records would be read as if they had been committed."""
    files_of(clean, "orders-0/*14.txnindex")[0].unlink()
    assert errors(findings(clean)) == ["the abort at offset 21 is missing"]


def test_a_missing_segment_is_a_gap(clean: Path) -> None:
    for path in files_of(clean, "orders-0/*14.*"):
        path.unlink()
    found = findings(clean)
    assert "offsets 14 to 27 are missing, and the cleaner did not get here" in [each.what for each in found]


def test_a_gap_that_the_cleaner_left_is_fine(clean: Path) -> None:
    for path in files_of(clean, "orders-0/*14.*"):
        path.unlink()
    (clean / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 28\n")
    assert findings(clean) == []


def test_a_batch_that_lies_under_a_right_crc_is_an_error(clean: Path) -> None:
    liar = build_batch([Record(1, 5, None, b"x"), Record(1, 5, None, b"y")], base_offset=0, last_offset=1)
    (clean / "orders-1/00000000000000000000.log").write_bytes(liar)
    assert any("a record at offset 1 follows 1" in what for what in errors(findings(clean)))


def test_a_batch_whose_records_cannot_be_decompressed_is_an_error(clean: Path) -> None:
    batch = build_batch([Record(0, 5, None, b"x" * 50)], codec=Codec.NONE, leader_epoch=0)
    batch[22] |= Codec.LZ4
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    (clean / "orders-1/00000000000000000000.log").write_bytes(batch)
    assert any(what.startswith("the CRC is right, but the compressed records") for what in errors(findings(clean)))


def test_findings_of_one_file_are_bounded(clean: Path) -> None:
    batch = bytes(build_batch([Record(0, 5, None, b"x")]))
    (clean / "orders-1/00000000000000000000.log").write_bytes(batch * 100)
    verification = verified(clean)
    path = f"{clean}/orders-1/00000000000000000000.log"
    assert [each.path for each in verification.findings.kept].count(path) == MAX_FINDINGS_PER_FILE
    assert verification.findings.not_kept[path] == 99 - MAX_FINDINGS_PER_FILE


def test_a_file_that_may_not_be_read_is_an_error_and_the_rest_goes_on(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Disk.open

    def refuse(disk: Disk, path: str, *, write: bool = False, create: bool = False) -> File:
        if path.endswith("14.log"):
            raise PermissionError(13, "Permission denied", path)
        return opened(disk, path, write=write, create=create)

    monkeypatch.setattr(Disk, "open", refuse)
    found = findings(clean)
    assert "it cannot be read: Permission denied" in [each.what for each in found]


def test_an_empty_or_foreign_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotALogDirectory, match="holds no partitions and no segments"):
        prepare(Disk(), str(tmp_path), lambda _path: False)
