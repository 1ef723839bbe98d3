"""``lamina backup`` and ``lamina restore``: what they refuse, what they print, and a broker that is stopped."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamina.storage import RESTORING
from lamina.store.member_file import MemberRecord, write_member_file
from tests.broker.process import COMMAND, SOURCES, BrokerProcess, eventually
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import Lamina
from tests.cli.test_document import DOCUMENT

NOW_MS = 1_700_000_000_000


def files_below(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def fill(broker: BrokerProcess, *topics: str, count: int = 3) -> None:
    with RawClient(broker) as client:
        for topic in topics:
            client.create_topic(topic)
            for number in range(count):
                assert client.produce(topic, batch_of((b"k", b"%d" % number), now_ms=NOW_MS)).error_code == 0


def end_offset(broker: BrokerProcess, topic: str) -> int:
    with RawClient(broker) as client:
        return int(client.list_offset(topic, -1).offset)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with BrokerProcess(tmp_path_factory.mktemp("stopped") / "data") as broker:
        fill(broker, "orders")
    return broker.data_dir


@pytest.fixture
def data(tmp_path: Path, stopped: Path) -> Path:
    """The data directory of a broker that was stopped cleanly."""
    return shutil.copytree(stopped, tmp_path / "data")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as broker:
        fill(broker, "orders")
        yield broker


def test_a_stopped_broker_comes_back_with_nothing_to_recover(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    before = files_below(data)
    outcome = lamina("backup", "--dir", data, tmp_path / "backup")
    assert outcome.status == 0
    assert outcome.out.splitlines()[1].split()[:4] == ["orders", "0", "0", "3"]
    assert f"lamina restore {tmp_path}/backup" in outcome.out
    assert files_below(data) == before
    kept = files_below(tmp_path / "backup")
    outcome = lamina("restore", tmp_path / "backup", "--dir", tmp_path / "restored")
    assert outcome.status == 0
    assert f"lamina serve --data-dir={tmp_path}/restored" in outcome.out
    assert lamina("verify", "--dir", tmp_path / "restored/logs").out.endswith("0 errors, 0 warnings\n")
    with BrokerProcess(tmp_path / "restored") as broker:
        assert broker.facts["recovered_partitions"] == 0
        assert end_offset(broker, "orders") == 3
        fill(broker, "orders", "another")
    assert files_below(tmp_path / "backup") == kept
    assert files_below(data) == before


def test_a_running_broker_is_not_held_up_and_comes_back_recovered(
    lamina: Lamina, tmp_path: Path, running: BrokerProcess
) -> None:
    outcome = lamina("backup", "--dir", running.data_dir, tmp_path / "backup", "--json")
    assert outcome.status == 0
    fill(running, "orders", "later")
    partition, summary = outcome.objects
    assert (partition["topic"], partition["end_offset"]) == ("orders", 3)
    assert (summary["clean_shutdown"], summary["partitions"], summary["missing"]) == (False, 1, [])
    assert not (tmp_path / "backup/logs/.kafka_cleanshutdown").exists()
    restored = lamina("restore", tmp_path / "backup", "--dir", tmp_path / "restored", "--json").objects
    for row in (*outcome.objects, *restored):
        for name in (*row, row["type"]):
            assert f"`{name}`" in DOCUMENT
    with BrokerProcess(tmp_path / "restored") as broker:
        assert broker.facts["recovered_partitions"] == 1
        assert broker.facts["cluster_id"] == running.facts["cluster_id"]
        assert end_offset(broker, "orders") == 3


def test_several_log_directories(lamina: Lamina, tmp_path: Path) -> None:
    def config(name: str, *directories: str) -> Path:
        path = tmp_path / f"{name}.properties"
        path.write_text("log.dirs=" + ",".join(str(tmp_path / name / each) for each in directories) + "\nnode.id=5\n")
        return path

    old = config("old", "a", "b")
    with BrokerProcess(tmp_path / "old/data", "--config", str(old)) as broker:
        fill(broker, "t0", "t1", "t2")
        arguments = ("--dir", tmp_path / "old/data", "--config", old)
        assert lamina("backup", *arguments, tmp_path / "backup").status == 0
    new = config("new", "a", "b")
    assert lamina("restore", tmp_path / "backup", "--config", new, "--dir", tmp_path / "new/data").status == 0
    for name in ("a", "b"):
        held = {path.name for path in (tmp_path / "old" / name).iterdir() if path.is_dir()}
        assert {path.name for path in (tmp_path / "new" / name).iterdir() if path.is_dir()} == held
    with BrokerProcess(tmp_path / "new/data", "--config", str(new)) as broker:
        assert [end_offset(broker, f"t{number}") for number in range(3)] == [3, 3, 3]
    outcome = lamina("restore", tmp_path / "backup", "--dir", tmp_path / "single")
    assert outcome.out.endswith(f"lamina serve --data-dir={tmp_path}/single --node-id=5\n")
    with BrokerProcess(tmp_path / "single", "--node-id", "5") as broker:
        assert [end_offset(broker, f"t{number}") for number in range(3)] == [3, 3, 3]


def test_a_log_directory_that_cannot_be_read_is_refused(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    arguments = ("--dir", data, "--set", f"log.dirs={data}/logs,{tmp_path}/gone")
    outcome = lamina("backup", *arguments, tmp_path / "backup")
    assert outcome.status == 1
    assert f"{tmp_path}/gone cannot be read" in outcome.err
    assert not list(tmp_path.glob("backup*"))


def test_a_partition_that_the_broker_has_lost_is_named(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    shutil.rmtree(data / "logs/orders-0")
    (data / "logs/stranger-0").mkdir()
    outcome = lamina("backup", "--dir", data, tmp_path / "backup")
    assert outcome.status == 1
    assert "orders-0 is not in the backup" in outcome.err
    assert "stranger-0, which was not in the broker's metadata" in outcome.out
    assert (tmp_path / "backup").is_dir()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("data", "is there already"),
        ("data/inside", "which is to be backed up"),
        ("data/logs/inside", "which is to be backed up"),
        ("nowhere/backup", "make it first"),
    ],
)
def test_a_target_that_cannot_be(lamina: Lamina, tmp_path: Path, data: Path, target: str, sentence: str) -> None:
    before = files_below(data)
    outcome = lamina("backup", "--dir", data, tmp_path / target)
    assert (outcome.status, outcome.out) == (2, "")
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
    assert files_below(data) == before


def test_what_is_no_data_directory(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("backup", "--dir", tmp_path, tmp_path.parent / "backup")
    assert outcome.status == 2
    assert "it has no metadata.db" in outcome.err
    outcome = lamina("restore", tmp_path, "--dir", tmp_path / "new")
    assert outcome.status == 1
    assert "it has no backup.json" in outcome.err


def test_a_member_of_a_cluster_is_refused_with_what_can_be_done(lamina: Lamina, tmp_path: Path) -> None:
    write_member_file(str(tmp_path), MemberRecord("a-cluster"))
    outcome = lamina("backup", "--dir", tmp_path, tmp_path.parent / "backup")
    assert outcome.status == 2
    assert outcome.err == (
        f"lamina: {tmp_path} belongs to a member of a cluster, which others have records of too: "
        "`lamina cluster backup` backs up all of it\n"
    )


def test_too_little_room_is_said_in_figures(
    lamina: Lamina, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lamina("backup", "--dir", data, tmp_path / "whole").status == 0
    monkeypatch.setattr("lamina.log.files.Disk.free_bytes", lambda _disk, _path: 17)
    outcome = lamina("backup", "--dir", data, tmp_path / "backup")
    assert outcome.status == 1
    assert "has 17 bytes free" in outcome.err
    outcome = lamina("restore", tmp_path / "whole", "--dir", tmp_path / "new")
    assert outcome.status == 1
    assert "has 17 bytes free" in outcome.err
    assert not (tmp_path / "backup").exists()
    assert not (tmp_path / "new").exists()


def test_what_a_killed_backup_left_is_replaced_and_one_under_way_is_not(
    lamina: Lamina, tmp_path: Path, data: Path
) -> None:
    """It is killed where it waits for a segment that can never be read to the end."""
    fifo = data / "logs/orders-0/00000000000000000001.log"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*COMMAND, "backup", "--dir", str(data), str(tmp_path / "backup")],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert process.stderr is not None
    partial = tmp_path / "backup.partial"
    eventually(lambda: (partial / "logs/orders-0/00000000000000000000.log").exists())
    outcome = lamina("backup", "--dir", data, tmp_path / "backup")
    assert outcome.status == 2
    assert "another backup" in outcome.err
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stderr.close()
    assert not (tmp_path / "backup").exists()
    assert partial.is_dir()
    fifo.unlink()
    assert lamina("backup", "--dir", data, tmp_path / "backup").status == 0
    assert not partial.exists()


def test_a_directory_that_is_in_the_way_is_never_removed(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    mine = tmp_path / "backup.partial/mine"
    mine.mkdir(parents=True)
    outcome = lamina("backup", "--dir", data, tmp_path / "backup")
    assert outcome.status == 2
    assert "was not made by a backup" in outcome.err
    assert mine.is_dir()


def cut(backup: Path) -> None:
    log = next((backup / "logs/orders-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1])


def change(backup: Path) -> None:
    log = next((backup / "logs/orders-0").glob("*.log"))
    log.write_bytes(bytes([log.read_bytes()[0] ^ 1]) + log.read_bytes()[1:])


def remove(backup: Path) -> None:
    next((backup / "logs/orders-0").glob("*.log")).unlink()


def unlist(backup: Path) -> None:
    manifest = json.loads((backup / "backup.json").read_text())
    manifest["files"] = [file for file in manifest["files"] if not file["path"].endswith(".log")]
    (backup / "backup.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("harm", "sentence"), [(cut, "bytes, not"), (change, "is damaged"), (remove, "is missing"), (unlist, "is damaged")]
)
def test_a_damaged_backup_is_not_restored(
    lamina: Lamina, tmp_path: Path, data: Path, harm: Callable[[Path], None], sentence: str
) -> None:
    lamina("backup", "--dir", data, "--copy", tmp_path / "backup")
    harm(tmp_path / "backup")
    outcome = lamina("restore", tmp_path / "backup", "--dir", tmp_path / "new")
    assert outcome.status == 1
    assert sentence in outcome.err
    assert not (tmp_path / "new").exists()


def test_only_an_empty_directory_is_restored_into(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    lamina("backup", "--dir", data, tmp_path / "backup")
    outcome = lamina("restore", tmp_path / "backup", "--dir", data)
    assert outcome.status == 2
    assert "is not empty" in outcome.err
    outcome = lamina("restore", tmp_path / "backup", "--dir", tmp_path / "backup/inside")
    assert outcome.status == 2
    assert "inside the backup" in outcome.err
    (tmp_path / "disk/lost+found").mkdir(parents=True)
    assert lamina("restore", tmp_path / "backup", "--dir", tmp_path / "disk").status == 0


def test_no_broker_starts_on_a_backup(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    backup = tmp_path / "backup"
    lamina("backup", "--dir", data, backup)
    before = files_below(backup)
    outcome = lamina("serve", "--data-dir", backup, "--listen", "127.0.0.1:0")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        f"lamina: {backup} is a backup: restore it first with `lamina restore {backup} --dir DATA`, "
        "and start the broker on DATA\n"
    )
    assert "restore it first" in lamina("compact", "--dir", backup).err
    assert files_below(backup) == before


def test_no_broker_starts_on_half_a_restore(lamina: Lamina, tmp_path: Path, data: Path) -> None:
    lamina("backup", "--dir", data, tmp_path / "backup")
    half = tmp_path / "half"
    half.mkdir()
    (half / RESTORING).touch()
    outcome = lamina("serve", "--data-dir", half, "--listen", "127.0.0.1:0")
    assert outcome.status == 1
    assert "half a backup" in outcome.err
    outcome = lamina("restore", tmp_path / "backup", "--dir", half)
    assert outcome.status == 2
    assert "did not end" in outcome.err
    assert [path.name for path in half.iterdir()] == [RESTORING]
