"""``lamina serve``: what it says, and how it refuses."""

import json
import os
import pty
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina import __version__
from lamina.cli import serve as serve_command
from lamina.cluster.ports import HOST
from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.settings.definition import SettingError
from tests.broker.process import COMMAND, NO_SPARK, SOURCES, BrokerProcess
from tests.broker.raw import METADATA, METADATA_VERSION, RawClient, metadata_request
from tests.cli.running import Lamina, Outcome


def serve(*args: str | Path, cwd: Path | None = None) -> Outcome:
    """A broker that does not start, or that is stopped as soon as it has said all that it says."""
    process = subprocess.Popen(
        [*COMMAND, "serve", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        first = process.stdout.readline()
        if first:
            process.send_signal(signal.SIGTERM)
        out, err = process.stdout.read(), process.stderr.read()
    return Outcome(process.wait(60), first + out, err)


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="only Linux tells what becomes of descriptors")
def test_what_a_broker_was_given_goes_to_none_of_its_children(tmp_path: Path) -> None:
    """A cluster knows by a lock on such a descriptor that a broker lives; its engine may live a moment longer."""
    given, ours = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), *NO_SPARK],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[given],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    with process, open(given, "rb"), open(ours, "wb"):
        assert process.stdout is not None
        process.stdout.readline()
        flags = Path(f"/proc/{process.pid}/fdinfo/{given}").read_text().split()[3]
        process.terminate()
    assert int(flags, 8) & os.O_CLOEXEC


def refusal(*args: str | Path, status: int = 1) -> str:
    outcome = serve(*args)
    assert (outcome.status, outcome.out) == (status, ""), outcome
    assert outcome.err.count("\n") == 1, outcome.err
    return outcome.err


def test_the_first_line_is_for_programs_and_the_rest_for_people(tmp_path: Path) -> None:
    outcome = serve("--listen", "127.0.0.1:0", cwd=tmp_path)
    assert outcome.status == 0
    facts = json.loads(outcome.out.splitlines()[0])
    assert facts["data_dir"] == str(tmp_path / "lamina-data")
    assert facts["log_dirs"] == [str(tmp_path / "lamina-data" / "logs")]
    assert (facts["node_id"], facts["version"], facts["recovered_partitions"]) == (1, __version__, 0)
    address = facts["listening"][0]["address"]
    for said in (address, facts["data_dir"], __version__, "compaction  on", "Ctrl-C", "lamina produce"):
        assert said in outcome.out.partition("\n")[2]
    assert {path.name for path in (tmp_path / "lamina-data").iterdir()} >= {"logs", "metadata.db", ".gitignore"}
    assert "*" in (tmp_path / "lamina-data" / ".gitignore").read_text().splitlines()


def on_terminal(data: Path, kill: bool = False) -> str:
    """What a person sees when a broker starts on a terminal."""
    ours, theirs = pty.openpty()
    arguments = ("serve", "--data-dir", data, "--listen", "127.0.0.1:0")
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = ""
    while "--create" not in shown:
        shown += os.read(ours, 1024).decode()
    process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    process.wait(60)
    os.close(ours)
    return shown


def test_on_a_terminal_only_people_are_spoken_to(tmp_path: Path) -> None:
    shown = on_terminal(tmp_path / "data", kill=True)
    assert '"listening"' not in shown
    assert "(0 partitions)" in shown
    with BrokerProcess(tmp_path / "data") as broker:
        with RawClient(broker) as client:
            client.create_topic("orders")
        broker.kill()
    assert "(1 partition, recovered after an unclean shutdown)" in on_terminal(tmp_path / "data")
    assert "(1 partition)" in on_terminal(tmp_path / "data")


def test_logs_may_be_json(tmp_path: Path) -> None:
    outcome = serve("--data-dir", tmp_path, "--listen", "127.0.0.1:0", "--json-logs", "--set", "no.such.name=1")
    assert len(outcome.out.splitlines()) == 1
    lines = [json.loads(line) for line in outcome.err.splitlines()]
    assert any(line["level"] == "warning" and "no.such.name" in line["message"] for line in lines)


def test_a_file_a_flag_and_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\nlisteners=PLAINTEXT://127.0.0.1:1\n")
    outcome = serve("--config", file, "--listen", "127.0.0.1:0", "--set", "node.id=5", "--node-id", "4")
    facts = json.loads(outcome.out.splitlines()[0])
    assert facts["node_id"] == 5
    assert facts["log_dirs"] == [f"{tmp_path}/a", f"{tmp_path}/b"]


def test_zookeeper_is_a_short_form_of_a_setting(lamina: Lamina, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str | None] = {}

    def resolve(*_: object, **flags: str | None) -> None:
        given.update(flags)
        raise SettingError("that is all")

    monkeypatch.setattr(serve_command, "settings_from", resolve)
    assert lamina("serve", "--zookeeper", "zk1:2181,zk2:2181/lamina").status == 2
    assert given["zookeeper.connect"] == "zk1:2181,zk2:2181/lamina"
    assert lamina("serve").status == 2
    assert given["zookeeper.connect"] is None


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port in use, which is what makes it known."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_a_port_in_use(tmp_path: Path, free_port: int) -> None:
    said = refusal("--data-dir", tmp_path / "data", "--listen", f"127.0.0.1:{free_port}")
    assert f"127.0.0.1:{free_port}" in said
    assert "--listen" in said


@pytest.mark.parametrize(
    ("host", "said"),
    [("no-such-host.invalid", "there is no host of that name"), ("192.0.2.1", "this machine has no such address")],
)
def test_an_address_of_somewhere_else(tmp_path: Path, host: str, said: str) -> None:
    outcome = serve("--data-dir", tmp_path / "data", "--listen", f"{host}:9092")
    assert (outcome.status, outcome.out) == (1, "")
    told = outcome.err.splitlines()[-1]
    assert told.startswith(f"lamina: {host}:9092 cannot be listened on: {said}; ")
    assert "--listen HOST:PORT" in told


def test_listening_everywhere_shows_an_address_that_clients_can_use(tmp_path: Path) -> None:
    arguments = ("--data-dir", tmp_path / "data", "--listen")
    outcome = serve(*arguments, ":0")
    port = json.loads(outcome.out.splitlines()[0])["listening"][0]["port"]
    assert f"is listening on every address, port {port}\n" in outcome.out
    assert f"are told to connect to localhost:{port}\n" in outcome.out
    assert "for those on other machines: --set advertised.listeners=PLAINTEXT://NAME:PORT" in outcome.out
    assert f"--bootstrap-server localhost:{port}" in outcome.out
    outcome = serve(*arguments, "0.0.0.0:0", "--set", "advertised.listeners=PLAINTEXT://broker.example:1234")
    assert "are told to connect to broker.example:1234\n" in outcome.out
    assert "--bootstrap-server broker.example:1234" in outcome.out
    assert "other machines" not in outcome.out


def test_a_member_says_who_it_is_and_tells_clients_of_their_listener_alone(
    zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    ensemble = f"{HOST}:{zookeeper.port}/{tmp_path.name}"
    outcome = serve("--data-dir", tmp_path, "--listen", ":0", "--node-id", "7", "--zookeeper", ensemble)
    facts = json.loads(outcome.out.splitlines()[0])
    for_clients, for_brokers = facts["listening"]
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert f"lamina {__version__} is listening on every address, port {for_clients['port']}" in lines
    assert f"clients are told to connect to {for_clients['address']}" in lines
    assert f"cluster broker 7 of {facts['cluster_id']}, ZooKeeper at {ensemble}" in lines
    assert f"brokers connect to {for_brokers['address']}" in lines


def test_what_to_type_names_the_program_that_runs(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "lamina"
    program.parent.mkdir()
    program.write_text(f"#!{COMMAND[0]}\nfrom lamina.cli import main\nmain()\n")
    program.chmod(0o755)
    arguments = ("serve", "--data-dir", "data", "--listen", "127.0.0.1:0")
    for path, typed in (("/usr/bin:/bin", "bin/lamina"), (f"{program.parent}:/usr/bin:/bin", "lamina")):
        process = subprocess.Popen(
            ["bin/lamina", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SOURCES), "PATH": path},
        )
        assert process.stdout is not None
        with process.stdout:
            line = next(line for line in process.stdout if "echo hello" in line)
            assert f"| {typed} produce greetings" in line
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_file_is_no_data_directory(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        outcome = lamina("serve", "--data-dir", place, "--listen", "127.0.0.1:0")
        assert outcome.err == f"lamina: {file} is not a directory: name another one with --data-dir\n"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refusal("--data-dir", tmp_path / "file" / "data", "--listen", "127.0.0.1:0")
    assert str(tmp_path / "file") in said


def test_a_directory_of_another_node_or_cluster_or_in_use(tmp_path: Path) -> None:
    arguments = ("--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    with BrokerProcess(tmp_path / "data") as broker:
        assert f"in use by process {broker.pid}:" in refusal(*arguments)
        assert f"in use by process {broker.pid}:" in refusal(*arguments[:2], "--listen", broker.address)
    mark = tmp_path / "data" / "logs" / ".kafka_cleanshutdown"
    assert mark.is_file()
    assert "node 1" in refusal(*arguments, "--node-id", "2")
    identity = tmp_path / "data" / "logs" / "meta.properties"
    identity.write_text(identity.read_text().replace("cluster.id=", "cluster.id=another-"))
    assert "cluster another-" in refusal(*arguments)
    assert mark.is_file(), "a refused start leaves the mark of a clean stop"


def test_metadata_from_a_newer_lamina(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path):
        pass
    database = sqlite3.connect(tmp_path / "metadata.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    assert "newer" in refusal("--data-dir", tmp_path, "--listen", "127.0.0.1:0")
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").is_file()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--listen", "9092"), "--listen: '9092' is not of the form HOST:PORT, such as 127.0.0.1:9092"),
        (("--listen", "127.0.0.1:x"), "--listen: '127.0.0.1:x' is not of the form HOST:PORT"),
        (("--listen", "127.0.0.1:70000"), "--listen: port 70000 is above 65535"),
        (("--listen", "no host:1"), "PLAINTEXT://no host:1"),
        (("--listen", "0.0.0.0:0"), "set advertised.listeners=PLAINTEXT://NAME:PORT"),
        (("--node-id", "x"), "node.id"),
        (("--set", "listeners=SASL_SSL://127.0.0.1:0"), "SASL_SSL"),
        (("--set", "authorizer.class.name=x"), "StandardAuthorizer"),
        (("--config", "/no/such/file"), "/no/such/file"),
        (("--zookeeper", "127.0.0.1:2181/a//b"), "/a//b cannot be a path in ZooKeeper; write it as /lamina or /a/b"),
        (("--zookeeper", "127.0.0.1:2181", "--set", "zookeeper.set.acl=true"), "needs credentials"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    assert said in refusal("--data-dir", tmp_path, *args, status=2)


def test_listening_beyond_loopback_is_warned_of_loudly(tmp_path: Path) -> None:
    outcome = serve("--data-dir", tmp_path, "--listen", ":0")
    assert "OPEN TO OTHERS" in outcome.err
    assert "OPEN TO OTHERS" not in serve("--data-dir", tmp_path, "--listen", "127.0.0.1:0").err


def test_listeners_and_what_is_advertised_of_each(tmp_path: Path) -> None:
    listeners = "INSIDE://127.0.0.1:0,SIX://[::1]:0"
    broker = BrokerProcess(
        tmp_path,
        "--set",
        f"listeners={listeners}",
        "--set",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,SIX:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "--set",
        "advertised.listeners=INSIDE://inside.example.org:19092,SIX://[::1]:0",
    )
    with broker, RawClient(broker) as client:
        told = client.ask(metadata_request()).brokers[0]
        assert (told.host, told.port) == ("inside.example.org", 19092)
        port = broker.facts["listening"][1]["port"]
        client.socket.close()
        client.socket = socket.create_connection(("::1", port), timeout=30)
        client.begin(metadata_request())
        told = client.answer(METADATA, METADATA_VERSION).brokers[0]
        assert (told.host, told.port) == ("::1", port)
