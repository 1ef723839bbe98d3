"""``lamina dump`` on every kind of file, whole and damaged."""

import json
import os
from pathlib import Path

import pytest

from lamina.log.files import Disk, File
from lamina.records.record import Record, build_batch
from tests.cli.running import Lamina, run_process
from tests.fixtures.kafka_data import load_fixture
from tests.log.verify.sample import flip, make_directory

FIRST = "00000000000000000000"
SECOND = "00000000000000000014"


def table(text: str) -> list[list[str]]:
    """Cells of a printed table; two spaces part them."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_batches_as_a_table(lamina: Lamina, directory: Path) -> None:
    outcome = lamina("dump", directory / f"orders-0/{FIRST}.log")
    assert outcome.status == 0
    assert outcome.err == ""
    assert outcome.out.splitlines()[:3] == [
        "position  base offset  last offset  count  size  codec  time                             producer  sequences"
        "  leader epoch  flags                   magic  crc       valid",
        "0         0            2            3      163   none   2023-11-14T22:13:20.002Z create                     "
        "  0                                     2      25f36f68  yes",
        "163       3            4            2      129   none   2023-11-14T22:13:20.004Z create  7/0       0-1      "
        "  0                                     2      108d9c5a  yes",
    ]


def test_a_batch_as_json(lamina: Lamina, directory: Path) -> None:
    path = directory / f"orders-0/{FIRST}.log"
    marker = lamina("dump", "--json", path).objects[3]
    assert marker == {
        "file": str(path),
        "type": "batch",
        "position": 421,
        "base_offset": 7,
        "last_offset": 7,
        "count": 1,
        "base_sequence": -1,
        "last_sequence": -1,
        "producer_id": 8,
        "producer_epoch": 0,
        "leader_epoch": 0,
        "transactional": True,
        "control": True,
        "delete_horizon_ms": None,
        "timestamp_type": "create",
        "max_timestamp": 1700000000007,
        "time": "2023-11-14T22:13:20.007Z",
        "size_bytes": 78,
        "magic": 2,
        "codec": "none",
        "crc": marker["crc"],
        "valid": True,
        "fault": None,
    }


def test_records_as_json_come_behind_their_batch(lamina: Lamina, directory: Path) -> None:
    rows = lamina("dump", "--records", "--json", directory / f"orders-0/{FIRST}.log").objects
    assert [row["type"] for row in rows[:5]] == ["batch", "record", "record", "record", "batch"]
    header = {"key": "trace", "key_encoding": "text", "value": None, "value_encoding": None}
    assert rows[1]["key"] == "key-0"
    assert rows[1]["headers"] == [header]
    records = [row for row in rows if row["type"] == "record"]
    assert [row["offset"] for row in records] == list(range(14))
    assert [row["sequence"] for row in records[2:6]] == [None, 0, 1, 0]
    assert [(row["control_type"], row["coordinator_epoch"]) for row in records if row["control_type"]] == [
        ("abort", 0),
        ("commit", 0),
    ]


def test_records_of_a_real_kafka_are_the_ones_its_consumer_read(lamina: Lamina, tmp_path: Path) -> None:
    data = load_fixture(tmp_path).clean
    for topic in ("codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"):
        path, truth = data.partition(topic)
        rows = lamina("dump", "--records", "--json", *sorted(path.glob("*.log"))).objects
        offsets = [row["offset"] for row in rows if row["type"] == "record"]
        assert offsets == [record.offset for record in truth.records]


def test_bytes_that_are_no_text_are_base64_and_lines_stay_lines(lamina: Lamina, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(build_batch([Record(0, 0, b"\xff\x00", b"two\nlines"), Record(1, 0, None, b"")]))
    first, second = (row for row in lamina("dump", "--records", "--json", path).objects if row["type"] == "record")
    assert (first["key"], first["key_encoding"]) == ("/wA=", "base64")
    assert (first["value"], first["value_encoding"]) == ("two\nlines", "text")
    assert (second["key"], second["value"]) == (None, "")
    assert table(lamina("dump", "--records", path).out)[1:] == [
        ["0", "1970-01-01T00:00:00.000Z", "base64:/wA=", "two\\nlines"],
        ["1", "1970-01-01T00:00:00.000Z", "null"],
    ]


def test_a_batch_larger_than_any_buffer_is_shown_with_its_records(lamina: Lamina, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(build_batch([Record(0, 0, None, b"x" * 3_000_000)]))
    rows = lamina("dump", "--records", "--json", path).objects
    assert len(rows[1]["value"]) == 3_000_000


COORDINATION = ("coordinator epoch", "transaction since")
GOLDEN = {
    f"orders-0/{FIRST}.index": [["offset", "position"], ["4", "163"], ["6", "292"], ["7", "421"], ["10", "628"]],
    f"orders-0/{FIRST}.timeindex": [
        ["timestamp", "time", "offset"],
        ["1700000000004", "2023-11-14T22:13:20.004Z", "4"],
        ["1700000000006", "2023-11-14T22:13:20.006Z", "6"],
    ],
    f"orders-0/{SECOND}.txnindex": [
        ["producer id", "first offset", "last offset", "last stable offset"],
        ["8", "19", "21", "22"],
    ],
    f"orders-0/{SECOND}.snapshot": [
        ["producer id", "epoch", "last sequence", "last offset", "offset delta", "time", *COORDINATION],
        ["7", "0", "1", "4", "1", "2023-11-14T22:13:20.004Z", "-1"],
        ["8", "0", "1", "6", "1", "2023-11-14T22:13:20.007Z", "0"],
        ["9", "0", "1", "9", "1", "2023-11-14T22:13:20.010Z", "0"],
    ],
    "orders-0/leader-epoch-checkpoint": [["epoch", "start offset"], ["0", "0"], ["1", "28"]],
    "recovery-point-offset-checkpoint": [["topic", "partition", "offset"], ["orders", "0", "42"], ["orders", "1", "0"]],
    "replication-offset-checkpoint": [["topic", "partition", "offset"], ["orders", "0", "42"], ["orders", "1", "0"]],
    "log-start-offset-checkpoint": [["(empty)"]],
    "orders-0/partition.metadata": [["topic id"], ["AAECAwQFBgcICQoLDA0ODw"]],
    ".kafka_cleanshutdown": [["version", "broker epoch"], ["0", "-1"]],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_every_other_kind_of_file(lamina: Lamina, directory: Path, name: str) -> None:
    outcome = lamina("dump", directory / name)
    assert (outcome.status, outcome.err) == (0, "")
    expected = GOLDEN[name]
    assert table(outcome.out)[: len(expected)] == expected


def test_meta_properties(lamina: Lamina, directory: Path) -> None:
    rows = lamina("dump", "--json", directory / "meta.properties").objects
    assert {row["name"]: row["value"] for row in rows}["cluster.id"] == "sample"


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_a_file_with_a_suffix_is_of_the_same_kind(lamina: Lamina, directory: Path, suffix: str) -> None:
    path = directory / f"orders-0/{FIRST}.index"
    plain = lamina("dump", path).out
    path.rename(str(path) + suffix)
    assert lamina("dump", str(path) + suffix).out == plain


def test_the_preallocated_end_of_an_index_is_said(lamina: Lamina, tmp_path: Path) -> None:
    directory = make_directory(tmp_path / "data", cleanly=False)
    path = directory / "orders-0/00000000000000000028.index"
    outcome = lamina("dump", path)
    assert outcome.status == 0
    assert outcome.out.splitlines()[-1].startswith("208 preallocated bytes follow")
    assert lamina("dump", "--json", path).objects[-1] == {
        "file": str(path),
        "type": "preallocated",
        "size_bytes": 208,
    }


def test_several_files_are_headed_by_their_names(lamina: Lamina, directory: Path) -> None:
    paths = [directory / f"orders-0/{FIRST}.{kind}" for kind in ("index", "txnindex")]
    lines = lamina("dump", *paths).out.splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{path}:" for path in paths]


# Damage: what can be read is shown, one sentence says the rest, and the status is 2


def test_a_cut_segment_shows_what_is_whole(lamina: Lamina, directory: Path) -> None:
    path = directory / f"orders-0/{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-1])
    outcome = lamina("dump", path)
    assert outcome.status == 2
    assert len(outcome.out.splitlines()) == 7
    assert outcome.err.startswith(f"lamina: {path}: at position 706: a batch of ")
    assert outcome.err.endswith(" runs past the file's end\n")


def test_a_batch_with_a_wrong_crc_is_shown_and_those_behind_it(lamina: Lamina, directory: Path) -> None:
    path = directory / f"orders-0/{FIRST}.log"
    flip(path, 100)
    outcome = lamina("dump", "--json", path)
    assert outcome.status == 2
    assert [row["valid"] for row in outcome.objects] == [False] + [True] * 6
    assert "at position 0: the CRC is" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["index", "timeindex", "txnindex", "snapshot"])
def test_other_cut_files_are_said_to_be_cut(lamina: Lamina, directory: Path, kind: str) -> None:
    path = directory / f"orders-0/{SECOND}.{kind}"
    path.write_bytes(path.read_bytes()[:-1])
    outcome = lamina("dump", path)
    assert outcome.status == 2
    assert outcome.err.startswith(f"lamina: {path}: at position ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.endswith(("checkpoint", "metadata", "shutdown"))])
def test_text_that_is_not_the_files_own_is_refused(lamina: Lamina, directory: Path, name: str) -> None:
    (directory / name).write_text("Dear diary,\ntoday\n")
    outcome = lamina("dump", directory / name)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("name", ["notes.txt", "server.log", f"{FIRST}.log", f"{FIRST}.snapshot", "x.index", "x"])
def test_a_text_file_is_refused_with_one_sentence(lamina: Lamina, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("All work and no play makes Jack a dull boy.\n" * 10)
    outcome = lamina("dump", path)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"lamina: {path}: ")
    assert outcome.err.count("\n") == 1


def test_a_missing_file_a_directory_and_a_pipe_are_refused(lamina: Lamina, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    for name, sentence in (("gone.log", "no such file"), ("", "verify --dir"), ("pipe.log", "not a regular file")):
        outcome = lamina("dump", tmp_path / name)
        assert outcome.status == 2
        assert sentence in outcome.err
        assert outcome.err.count("\n") == 1


def test_a_file_without_permission_is_refused_and_the_next_one_shown(
    lamina: Lamina, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Disk.open

    def refuse(disk: Disk, path: str, *, write: bool = False, create: bool = False) -> File:
        if path.endswith(".log"):
            raise PermissionError(13, "Permission denied", path)
        return opened(disk, path, write=write, create=create)

    monkeypatch.setattr(Disk, "open", refuse)
    path = directory / f"orders-0/{FIRST}.log"
    outcome = lamina("dump", path, directory / f"orders-0/{FIRST}.index")
    assert outcome.status == 2
    assert outcome.err == f"lamina: {path}: permission denied: run this as the user that the broker runs as\n"
    assert "628" in outcome.out


def test_the_real_command_prints_json_for_a_pipe(directory: Path) -> None:
    outcome = run_process("dump", "--json", directory / f"orders-0/{FIRST}.log", COLUMNS="20")
    assert outcome.status == 0
    assert [json.loads(line)["base_offset"] for line in outcome.out.splitlines()] == [0, 3, 5, 7, 8, 10, 11]
