"""A pid is believed only while its guard is held: real processes, and what they leave."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.cluster.errors import ClusterError
from lamina.cluster.guarded_process import guarded_pid, hold_guard, send_signal, start_guarded
from tests.broker.process import eventually

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def guard(tmp_path: Path) -> Path:
    return tmp_path / "sleep.pid"


def start(guard: Path) -> "subprocess.Popen[bytes]":
    return start_guarded(SLEEP, guard, out=guard.with_suffix(".out"), log=guard.with_suffix(".log"))


@pytest.fixture
def process(guard: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with start(guard) as process:
        yield process
        process.kill()


def test_without_a_process_there_is_no_pid(guard: Path) -> None:
    assert guarded_pid(guard) is None
    assert not send_signal(guard, signal.SIGKILL)


def test_a_process_is_found_by_its_guard_and_killed_by_it(guard: Path, process: "subprocess.Popen[bytes]") -> None:
    assert guarded_pid(guard) == process.pid
    assert send_signal(guard, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert guarded_pid(guard) is None


def test_a_pid_that_is_another_process_by_now_is_not_believed(guard: Path) -> None:
    """What a machine that lost its power leaves: the number is given to somebody else after it."""
    guard.write_text(f"{os.getpid()}\n")
    assert guarded_pid(guard) is None
    assert not send_signal(guard, signal.SIGKILL)


def test_a_process_is_gone_for_others_before_its_parent_notices(
    guard: Path, process: "subprocess.Popen[bytes]"
) -> None:
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: guarded_pid(guard) is None)
    assert process.returncode is None


def test_a_second_process_under_the_same_guard_is_refused(guard: Path, process: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(ClusterError, match=rf"^sleep is already running \(process {process.pid}\)$"):
        start(guard)
    assert guarded_pid(guard) == process.pid


def test_children_of_a_guarded_process_do_not_keep_its_guard(guard: Path, tmp_path: Path) -> None:
    """A broker's engine may outlive the broker for a moment."""
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    command = (sys.executable, "-c", f"{code}; print('begun', flush=True); time.sleep(60)")
    out = tmp_path / "out"
    with start_guarded(command, guard, out=out, log=tmp_path / "log") as process:
        eventually(lambda: out.read_text() == "begun\n")
        process.kill()
    assert guarded_pid(guard) is None


def test_this_process_can_guard_itself(guard: Path) -> None:
    held = hold_guard(guard)
    assert guarded_pid(guard) == os.getpid()
    os.close(held)
    assert guarded_pid(guard) is None
