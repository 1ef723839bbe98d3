"""``lamina verify``: what it prints and what it ends with."""

import subprocess
import sys
from pathlib import Path

import pytest

from lamina.cli.lock_holder import is_held
from lamina.log.files import Disk
from tests.cli.running import Lamina, run_process
from tests.log.verify.sample import flip, make_directory

HOLD = (
    "import fcntl, sys\nfile = open(sys.argv[1], 'w')\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
    "print('held', flush=True)\nsys.stdin.read()"
)


def test_a_sound_directory_ends_with_status_0_and_counts(lamina: Lamina, directory: Path) -> None:
    outcome = lamina("verify", "--dir", directory)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("2 partitions, 4 segments, 21 batches, 42 records, ")
    assert outcome.out.endswith(": 0 errors, 0 warnings\n")


def test_one_partition_can_be_verified(lamina: Lamina, directory: Path) -> None:
    assert lamina("verify", "--dir", directory / "orders-1").out.startswith("1 partition, 1 segment, 0 batches, ")


def test_what_is_wrong_is_a_table_and_status_1(lamina: Lamina, directory: Path) -> None:
    flip(directory / "orders-0/00000000000000000014.log", 100)
    (directory / "orders-0/00000000000000000014.log.deleted").touch()
    outcome = lamina("verify", "--dir", directory)
    assert outcome.status == 1
    headings, error, warning, summary = outcome.out.splitlines()
    assert headings.split()[:5] == ["severity", "file", "position", "offset", "what"]
    assert error.split()[:4] == ["error", "orders-0/00000000000000000014.log", "0", "14"]
    assert "take the partition from another replica" in error
    assert warning.startswith("warning")
    assert summary.endswith(": 1 error, 1 warning")


def test_warnings_alone_end_with_status_0(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("verify", "--dir", make_directory(tmp_path / "data", cleanly=False))
    assert outcome.status == 0
    assert "would be cut at recovery" in outcome.out


def test_json_is_findings_and_a_summary(lamina: Lamina, directory: Path) -> None:
    path = directory / "orders-0/00000000000000000014.index"
    flip(path, 4)
    finding, summary = lamina("verify", "--dir", directory, "--json").objects
    assert finding == {
        "type": "finding",
        "severity": "error",
        "file": str(path),
        "position": 0,
        "offset": 18,
        "what": finding["what"],
        "advice": finding["advice"],
    }
    assert {**summary, "milliseconds": 0} == {
        "type": "summary",
        "directory": str(directory),
        "clean_shutdown": True,
        "broker_running": False,
        "partitions": 2,
        "segments": 4,
        "batches": 21,
        "records": 42,
        "bytes": sum(path.stat().st_size for path in directory.glob("*/*.log")),
        "milliseconds": 0,
        "errors": 1,
        "warnings": 0,
        "not_shown": {},
    }


def test_bad_input_is_one_sentence_and_status_2(lamina: Lamina, tmp_path: Path, directory: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "gone", directory / "meta.properties"):
        outcome = lamina("verify", "--dir", path)
        assert outcome.status == 2
        assert outcome.out == ""
        assert outcome.err.startswith(f"lamina: {path}")
        assert outcome.err.count("\n") == 1


def test_a_directory_without_permission_is_bad_input(
    lamina: Lamina, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_disk: Disk, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(Disk, "scan", refuse)
    outcome = lamina("verify", "--dir", directory)
    assert outcome.status == 2
    assert outcome.err == f"lamina: {directory}: permission denied: run this as the user that the broker runs as\n"


def test_a_directory_in_use_is_said_and_its_lock_left_alone(directory: Path) -> None:
    lock = directory / ".lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_held(str(lock))
        outcome = run_process("verify", "--dir", directory)
        assert outcome.status == 0
        assert outcome.err == "lamina: a broker is running on this directory: the end of its logs may look unfinished\n"
        assert is_held(str(lock))
    assert not is_held(str(lock))


def test_a_lock_file_that_is_not_there_is_held_by_nobody(tmp_path: Path) -> None:
    assert not is_held(str(tmp_path / ".lock"))
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("mark", ["metadata.db", "cluster.properties"])
def test_of_a_data_directory_the_logs_are_verified(lamina: Lamina, directory: Path, tmp_path: Path, mark: str) -> None:
    data = tmp_path / "broker"
    data.mkdir()
    directory.rename(data / "logs")
    (data / mark).touch()
    *_, summary = lamina("verify", "--dir", data, "--json").objects
    assert summary["directory"] == str(data / "logs")
    assert summary["partitions"] > 0
    empty = lamina("verify", "--dir", tmp_path)
    assert empty.status == 2
    assert "name a log directory (log.dirs, or logs in the data directory)" in empty.err
