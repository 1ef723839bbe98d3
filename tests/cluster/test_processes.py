"""Processes that do not end when they are told to."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.clocks import SYSTEM_CLOCKS
from lamina.cluster.broker_command import lamina_program
from lamina.cluster.guarded_process import guarded_pid, start_guarded
from lamina.cluster.layout import Layout
from lamina.cluster.processes import Processes
from lamina.cluster.state import BrokerPlace, ClusterState
from tests.broker.process import eventually

STATE = ClusterState(1, {1: BrokerPlace(9092), 2: BrokerPlace(9093)})
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "run").mkdir()
    return Layout(tmp_path)


@pytest.fixture
def hung(layout: Layout) -> Iterator["subprocess.Popen[bytes]"]:
    """Broker 2; broker 1 and ZooKeeper do not run."""
    log = layout.log("broker-2")
    with start_guarded((sys.executable, "-c", DEAF), layout.guard("broker-2"), log=log) as process:
        eventually(lambda: log.read_text() == "deaf\n")
        yield process
        process.kill()


def test_a_broker_that_hangs_is_told_after_a_while_and_killed_in_the_end(
    layout: Layout, hung: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.cluster.processes.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("lamina.cluster.processes.STOP_SECONDS", 1.0)
    told: list[str] = []
    Processes(layout, SYSTEM_CLOCKS, lamina_program).stop_all(STATE, told.append)
    assert told == [
        f"broker 2 does not end yet: `lamina cluster kill 2 --data-dir {layout.directory}` kills it",
        f"broker 2 did not end within 1 s and was killed; its log is {layout.log('broker-2')}",
    ]
    assert guarded_pid(layout.guard("broker-2")) is None
    assert hung.wait(10) == -signal.SIGKILL


def test_in_the_default_directory_nothing_needs_to_be_named(
    layout: Layout, hung: "subprocess.Popen[bytes]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setattr("lamina.cluster.layout.DEFAULT_DIRECTORY", tmp_path.name)
    monkeypatch.setattr("lamina.cluster.processes.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("lamina.cluster.processes.STOP_SECONDS", 0.2)
    told: list[str] = []
    Processes(layout, SYSTEM_CLOCKS, lamina_program).stop(["broker-2"], told.append)
    assert told[0] == "broker 2 does not end yet: `lamina cluster kill 2` kills it"
