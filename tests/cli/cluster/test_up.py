"""``lamina cluster up`` in one terminal, the other commands in a second one: real processes, by the directory alone."""

import codecs
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

from lamina.cluster.errors import ClusterError
from lamina.cluster.local_cluster import LocalCluster
from lamina.cluster.plan import plan
from lamina.cluster.state import write_state
from tests.broker.process import SOURCES, eventually
from tests.cli.running import COMMAND, Lamina, run_process
from tests.docs.screen import Screen
from tests.docs.shell import is_readable

NO_ANSWER = "no answer"
UP = ("--base-port", "0", "--set", "lamina.spark.master=none")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing that works there is left in the end."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    yield tmp_path / "cluster"
    with suppress(ClusterError):
        LocalCluster(tmp_path / "cluster").kill()


def test_a_second_terminal_finds_the_cluster_by_its_directory_and_ctrl_c_ends_it(
    lamina: Lamina, directory: Path
) -> None:
    where = ("--data-dir", directory)
    command = [*COMMAND, "cluster", "up", "--brokers", "2", "--json", *UP, *map(str, where)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["type"], ready["brokers"], ready["supervisor_pid"]) == ("cluster", 2, process.pid)

        shown: list[dict[str, Any]] = []

        def is_all_answering() -> bool:
            """On a busy machine a broker may not answer within the second that it is given."""
            shown[:] = lamina("cluster", "status", "--json", *where).objects
            return NO_ANSWER not in [row.get("state") for row in shown]

        eventually(is_all_answering, what=lambda: shown)
        assert [row["type"] for row in shown] == ["cluster", "cluster_broker", "cluster_broker"]
        assert shown[0]["bootstrap_servers"] == ",".join(row["address"] for row in shown[1:])
        assert [(row["id"], row["state"]) for row in shown[1:]] == [(1, "running"), (2, "running")]
        refused = lamina("cluster", "up", *where)
        assert refused.status == 1
        assert f"is already running (`lamina cluster up`, process {process.pid})" in refused.err
        assert refused.err.count("\n") == 1

        killed = lamina("cluster", "kill", "1", *where)
        assert killed.out == f"Killed broker 1 (process {shown[1]['pid']}).\n"
        told = next(row for row in map(json.loads, process.stdout) if row.get("id") == 1 and row["state"] == "dead")
        assert (told["type"], told["id"], told["state"], told["pid"]) == ("cluster_broker", 1, "dead", None)
        plain = lamina("cluster", "status", *where)
        assert plain.status == 0
        assert "broker 1 is dead" in plain.out
        headings, zookeeper = (line.split() for line in plain.out.splitlines()[:2])
        assert headings == ["id", "port", "state", "role", "leads", "under-replicated", "lag", "pid"]
        assert zookeeper == [
            shown[0]["zookeeper"].rpartition(":")[2],
            "running",
            "zookeeper",
            str(shown[0]["zookeeper_pid"]),
        ]
        assert shown[0]["zookeeper_state"] == "running"
        assert all(len(line) <= 80 for line in plain.out.splitlines() if not line.startswith(("Clients", "broker")))

        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr is not None
        # The controller was killed: the other broker may wait for the next one before it ends.
        assert all(line.startswith("lamina: broker 2 does not end yet: ") for line in process.stderr)
    ended = lamina("cluster", "status", *where)
    assert ended.status == 1
    assert f"The cluster in {directory} is not running.\n" in ended.out


class Terminal:
    """`lamina cluster up` for a person, on 80 columns."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen([*COMMAND, "cluster", "up", *arguments], stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._written = ""
        # What is read may end inside a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def _read(self) -> None:
        self._written += self._decoder.decode(os.read(self._ours, 65536))

    @property
    def lines(self) -> list[str]:
        screen = Screen()
        screen.write(self._written.replace("\x1b]", ""))
        return screen.lines

    def await_lines(self, is_shown: Callable[[list[str]], bool]) -> None:
        deadline = time.monotonic() + 60
        while not is_shown(self.lines):
            assert time.monotonic() < deadline, self.lines
            if is_readable(self._ours, 1):
                self._read()

    def end(self) -> int:
        """What it ends with, while it is read: a full terminal would keep it from ending."""
        while self.process.poll() is None:
            if is_readable(self._ours, 0.05):
                with suppress(OSError):
                    self._read()
        os.close(self._ours)
        return self.process.returncode


def test_on_a_terminal_there_is_a_table_and_a_stop_elsewhere_ends_it(lamina: Lamina, directory: Path) -> None:
    terminal = Terminal("--brokers", "1", *UP, "--data-dir", str(directory))
    terminal.await_lines(lambda lines: any("controller" in line for line in lines))
    assert any(line.startswith("lamina cluster of 1 broker is ready") for line in terminal.lines)
    assert any(line.lstrip().startswith("id") and line.endswith("out/s") for line in terminal.lines)
    [broker] = LocalCluster(directory).brokers()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    terminal.await_lines(lambda lines: any("broker 1 is dead" in line for line in lines))
    restarted = run_process("cluster", "restart", "1", "--json", "--data-dir", directory)
    assert [(row["type"], row["id"], row["state"]) for row in restarted.objects] == [("cluster_broker", 1, "running")]
    terminal.await_lines(lambda lines: not any("broker 1 is dead" in line for line in lines))
    [stopped] = lamina("cluster", "stop", "--json", "--data-dir", directory).objects
    assert (stopped["type"], stopped["zookeeper_state"], stopped["zookeeper_pid"]) == ("cluster", "stopped", None)
    assert lamina("cluster", "stop", "--data-dir", directory).out == f"The cluster in {directory} is not running.\n"
    assert terminal.end() == 0
    eventually(lambda: LocalCluster(directory).supervisor_pid() is None)


def test_refusals_are_one_sentence(lamina: Lamina, directory: Path) -> None:
    for args in (("status",), ("kill", "1"), ("stop",), ("restart", "1"), ("add-broker",)):
        outcome = lamina("cluster", *args, "--data-dir", directory)
        assert outcome.status == 1
        assert outcome.err.startswith(f"lamina: there is no cluster in {directory}: name its directory with --data-dir")
        assert outcome.err.count("\n") == 1
        assert not directory.exists()
    assert lamina("cluster", "up", "--brokers", "0").status == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("min.insync.replicas=banana", "min.insync.replicas = banana: must be a whole number"),
        ("node.id=7", "node.id is given by lamina cluster: leave it out"),
    ],
)
def test_a_setting_is_refused_before_it_is_kept(given: str, said: str, lamina: Lamina, directory: Path) -> None:
    refused = lamina("cluster", "up", *UP, "--set", given, "--data-dir", directory)
    assert refused.status == 2
    assert refused.err.startswith(f"lamina: {said}")
    assert refused.err.count("\n") == 1
    assert not directory.exists()


def test_a_start_that_is_refused_creates_nothing(lamina: Lamina, directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = lamina("cluster", "up", "--base-port", str(port), "--data-dir", directory)
    assert refused.status == 1
    assert refused.err.startswith(f"lamina: port {port}, which broker 1 would get, is taken by another program")
    assert not directory.exists()


def test_a_start_without_java_creates_nothing(lamina: Lamina, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.pipeline.java.all_javas", list)
    refused = lamina("cluster", "up", *UP, "--data-dir", directory)
    assert refused.status == 1
    assert refused.err.startswith("lamina: ZooKeeper needs Java 17 or newer, and there is none: install it, or pip")
    assert not directory.exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("kill", "two"), "'two' is not a broker: name a broker (1, 2, 3) or zookeeper"),
        (("restart", "two"), "'two' is not a broker: name a broker (1, 2, 3) or zookeeper"),
        (("stop", "two"), "'two' is not a broker: name a broker (1, 2, 3) or none to stop all"),
    ],
)
def test_what_is_no_broker_is_told_with_those_that_are(
    args: tuple[str, ...], said: str, lamina: Lamina, directory: Path
) -> None:
    directory.mkdir()
    write_state(LocalCluster(directory).layout.state, plan(None, 3, 0, {}))
    refused = lamina("cluster", *args, "--data-dir", directory)
    assert (refused.status, refused.err) == (2, f"lamina: {said}\n")


def test_a_file_is_not_a_directory(lamina: Lamina, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").touch()
    for given in ("afile", "afile/below"):
        refused = lamina("cluster", "up", "--data-dir", given)
        assert (refused.status, refused.err) == (2, "lamina: afile is a file: name a directory\n")


def test_ports_that_do_not_exist_are_refused_with_a_reason(lamina: Lamina, directory: Path) -> None:
    refused = lamina("cluster", "up", "--base-port", "65534", "--data-dir", directory)
    assert (refused.status, refused.err) == (
        1,
        "lamina: 3 brokers would need ports up to 65536, and the highest is 65535: choose a lower --base-port P\n",
    )


def test_a_path_is_shown_tidied(lamina: Lamina, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    refused = lamina("cluster", "status", "--data-dir", tmp_path / "a" / ".." / "b")
    assert refused.err.startswith(f"lamina: there is no cluster in {tmp_path}/b: ")
