"""lamina doctor on this machine, with and without a broker."""

import json
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.cli.doctor.bundle import CONTENTS, write_bundle
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import Lamina, Outcome, run_process

SECRET = "correct-horse-battery"


@pytest.fixture(autouse=True)
def _no_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Java there is, is no matter here, and asking it takes half a second."""
    monkeypatch.setattr("lamina.pipeline.java._release", lambda _: 21)


def found(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {row["name"].split()[0]: row for row in outcome.objects if row["type"] == "finding"}


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """Something that is no broker: it answers everybody alike, or hangs up at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    if answer is not None:
                        connection.recv(1000)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_sound_machine_gets_a_table_and_nothing_is_left_behind(lamina: Lamina, disk_path: Path) -> None:
    outcome = lamina("doctor", "--data-dir", disk_path / "data", "--listen", "127.0.0.1:0")
    assert outcome.status == 0
    assert "result" in outcome.out
    assert "what to do" not in outcome.out, "there is nothing to do"
    assert "does not exist yet; `lamina serve` creates it" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("0 problems, ")
    assert list(disk_path.iterdir()) == []


def test_json_tells_the_same(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("doctor", "--json", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    names = set(found(outcome))
    assert names >= {"python", "platform", "java", "spark", "kernel", "memory", "descriptors", "data", "disk", "port"}
    assert outcome.objects[-1]["problems"] == 0
    assert all(set(row) == {"type", "name", "state", "what", "advice"} for row in outcome.objects[:-1])


def test_a_running_broker_is_recognised_by_its_directory_and_its_port(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess]
) -> None:
    broker = own_broker()
    outcome = lamina("doctor", "--json", "--data-dir", broker.data_dir, "--listen", broker.address)
    findings = found(outcome)
    assert f"a broker is running on {broker.data_dir} (process {broker.pid})" in findings["data"]["what"]
    assert f"Lamina, node 1, cluster {broker.facts['cluster_id']} answers" in findings["port"]["what"]
    assert f"process {broker.pid}" in findings["port"]["what"]
    assert outcome.status == 0
    broker.stop()
    stopped = found(lamina("doctor", "--json", "--data-dir", broker.data_dir, "--listen", "127.0.0.1:0"))
    assert "was left by a clean stop, metadata schema 1" in stopped["data"]["what"]


def test_another_broker_on_the_port_is_not_taken_for_that_of_the_directory(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess], broker: BrokerProcess
) -> None:
    told = found(lamina("doctor", "--json", "--data-dir", own_broker().data_dir, "--listen", broker.address))["port"]
    assert told["state"] == "warning"
    assert f"taken by Lamina, node 1, cluster {broker.facts['cluster_id']} (process {broker.pid}," in told["what"]
    assert told["what"].endswith("; the broker that runs on the data directory listens elsewhere")


def test_a_broker_that_was_killed_left_an_unclean_directory(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess]
) -> None:
    broker = own_broker()
    broker.kill()
    outcome = lamina("doctor", "--json", "--data-dir", broker.data_dir, "--listen", "127.0.0.1:0")
    assert found(outcome)["data"]["state"] == "warning"
    assert outcome.status == 0


@pytest.mark.parametrize(
    "answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x06\0\0\0\x01\0\x23", b"\0\0\0\0"]
)
def test_a_port_that_something_else_has_is_a_problem(lamina: Lamina, tmp_path: Path, answer: bytes | None) -> None:
    with listening(answer) as port:
        outcome = lamina("doctor", "--json", "--data-dir", tmp_path / "data", "--listen", f"127.0.0.1:{port}")
        assert outcome.status == 1
        assert "does not speak Kafka" in found(outcome)["port"]["what"]
        assert "--listen" in found(outcome)["port"]["advice"]


def test_an_address_of_another_machine_is_a_problem(lamina: Lamina, tmp_path: Path) -> None:
    outcome = lamina("doctor", "--json", "--data-dir", tmp_path / "data", "--listen", "192.0.2.1:9092")
    assert found(outcome)["port"]["state"] == "problem"


def test_settings_that_cannot_be_used_are_a_finding(lamina: Lamina) -> None:
    outcome = lamina("doctor", "--json", "--set", "node.id=x")
    assert outcome.status == 1
    assert "node.id = x" in found(outcome)["settings"]["what"]
    assert "port" not in found(outcome)


def test_a_file_where_the_directory_should_be_is_a_problem(lamina: Lamina, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no directory")
    outcome = lamina("doctor", "--json", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    assert found(outcome)["data"]["state"] == "problem"


@pytest.mark.parametrize("content", [b"text", b"SQLite format 3\0" + bytes(44) + b"\0\0\0\x09" + bytes(36)])
def test_a_metadata_file_of_somebody_else_is_a_problem(lamina: Lamina, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metadata.db").write_bytes(content)
    outcome = lamina("doctor", "--json", "--data-dir", tmp_path, "--listen", "127.0.0.1:0")
    assert "is not Lamina's" in found(outcome)["data"]["what"]


def test_a_disk_with_less_room_than_is_wanted_is_a_problem(lamina: Lamina, tmp_path: Path) -> None:
    wanted = f"lamina.disk.free.min.bytes={1 << 62}"
    outcome = lamina("doctor", "--json", "--data-dir", tmp_path, "--listen", "127.0.0.1:0", "--set", wanted)
    assert found(outcome)["disk"]["state"] == "problem"


# Ping


def test_a_broker_that_answers_is_named(lamina: Lamina, own_broker: Callable[..., BrokerProcess]) -> None:
    outcome = lamina("doctor", "--ping", own_broker().address)
    assert outcome.status == 0
    assert "Lamina, node 1, cluster" in outcome.out


def test_nobody_and_somebody_else_do_not_answer_a_ping(lamina: Lamina) -> None:
    with listening(b"hello") as port:
        outcome = lamina("doctor", "--ping", f"127.0.0.1:{port}")
        assert (outcome.status, outcome.out) == (1, "")
        assert "does not speak Kafka" in outcome.err
        assert "not of its admin listener" in outcome.err
    outcome = lamina("doctor", "--ping", f"127.0.0.1:{port}")
    assert outcome.status == 1
    assert "refused; start a broker there with `lamina serve`, or correct the address" in outcome.err
    assert lamina("doctor", "--ping", "nonsense").status == 2


# The bundle


def bundle_parts(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        members = {member.name.removeprefix("lamina-bundle/"): tar.extractfile(member) for member in tar}
        return {name: file.read().decode() for name, file in members.items() if file is not None}


def test_a_bundle_holds_what_it_says_and_neither_records_nor_secrets(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = own_broker()
    with RawClient(broker) as raw:
        raw.create_topic("orders")
        now_ms = 1_700_000_000_000
        assert raw.produce("orders", batch_of((b"key", SECRET.encode()), now_ms=now_ms)).error_code == 0
    broker.stop()
    log = tmp_path / "broker.log"
    log.write_text("first line\n" + "".join(f"line {number}\n" for number in range(3000)))
    config = tmp_path / "server.properties"
    config.write_text(f"my.password={SECRET}\nlog.retention.hours=7\npassword.encoder.x={SECRET}\n")
    path = tmp_path / "report.tar.gz"
    arguments = ("--config", config, "--data-dir", broker.data_dir, "--listen", "127.0.0.1:0", "--log", log)
    outcome = lamina("doctor", "--bundle", path, *arguments)
    assert outcome.status == 0
    parts = bundle_parts(path)
    assert parts.keys() == CONTENTS.keys()
    assert all(f"{name}: {text}" in outcome.err for name, text in CONTENTS.items())
    assert SECRET not in "".join(parts.values())
    assert json.loads(parts["settings.json"])["log.retention.hours"] == {"value": "7", "source": "the file"}
    assert json.loads(parts["settings.json"])["my.password"]["value"] is None
    assert "orders-0/00000000000000000000.log" in parts["files.txt"]
    assert "first line" not in parts["log.txt"]
    assert "line 2999" in parts["log.txt"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_bundle_overwrites_nothing(lamina: Lamina, tmp_path: Path) -> None:
    path = tmp_path / "report.tar.gz"
    path.write_text("precious")
    outcome = lamina("doctor", "--bundle", path)
    assert (outcome.status, outcome.out) == (2, "")
    assert "already exists" in outcome.err
    with pytest.raises(FileExistsError):
        write_bundle(str(path), {})
    assert path.read_text() == "precious"


def test_a_bundle_that_cannot_be_written_is_not_left_half(lamina: Lamina, tmp_path: Path) -> None:
    arguments = ("--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    outcome = lamina("doctor", "--bundle", tmp_path / "gone" / "report.tar.gz", *arguments)
    assert outcome.status == 2
    outcome = lamina("doctor", "--bundle", tmp_path / "a.tar.gz", "--log", tmp_path / "gone.log", *arguments)
    assert outcome.status == 2
    assert not (tmp_path / "a.tar.gz").exists()
    assert lamina("doctor", "--log", "x").status == 2


def test_an_output_without_the_signs_gets_words(tmp_path: Path) -> None:
    arguments = ("doctor", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    outcome = run_process(*arguments, PYTHONIOENCODING="ascii")
    assert outcome.status == 0
    assert outcome.out.splitlines()[1].startswith("fine ")


def test_a_running_broker_is_recognised_by_its_admin_port(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess]
) -> None:
    broker = own_broker()
    admin = broker.facts["admin"][0]["url"].removeprefix("http://")
    given = ("--listen", broker.address, "--set", f"lamina.admin.listeners={admin}")
    findings = found(lamina("doctor", "--json", "--data-dir", broker.data_dir, *given))
    assert findings["admin"]["name"] == f"admin port {admin}"
    assert f"taken by the broker that runs on the data directory (process {broker.pid}," in findings["admin"]["what"]
    elsewhere = lamina("doctor", "--json", "--data-dir", broker.data_dir / "new", *given)
    assert found(elsewhere)["admin"]["state"] == "problem"
