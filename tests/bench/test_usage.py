"""CPU and memory of a process and all below it."""

import os
import subprocess
import sys

import pytest

from bench.usage import ProcessId, Spent, Usage, cpu_seconds, resident_bytes, ticks_between

HELD_BYTES = 64 << 20
HOLDER = f"held = b'x' * {HELD_BYTES}; print('ready', flush=True); input()"


def test_memory_of_children_counts() -> None:
    before = resident_bytes(os.getpid())
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with Usage([os.getpid()]) as usage:
            pass
        child.communicate()
    assert usage.peak_bytes - before >= HELD_BYTES


def test_cpu_of_a_child_counts_also_after_its_end() -> None:
    before = cpu_seconds(os.getpid())
    spent = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spent], check=True)
    assert cpu_seconds(os.getpid()) - before >= 0.25


IGNORING = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = os.fork()
if worker == 0:
    import time
    while time.process_time() < 0.5: pass
    print("ready", flush=True)
    signal.pause()
input()
os.kill(worker, signal.SIGTERM)
try:
    os.waitpid(worker, 0)
except ChildProcessError:
    print("ended", flush=True)
input()
"""


def test_a_worker_that_ends_and_is_not_waited_for_takes_nothing_back() -> None:
    with subprocess.Popen([sys.executable, "-c", IGNORING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        with Usage([parent.pid]) as usage:
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            assert parent.stdout.readline() == b"ended\n"
        parent.communicate(b"\n")
    assert usage.cpu_seconds >= 0


JVM, DAEMON, WORKER, OTHER = (ProcessId(number, 5) for number in (10, 20, 30, 40))
FIRST = {JVM: Spent(1, 100, 0), DAEMON: Spent(10, 50, 0), WORKER: Spent(20, 70, 0)}


def test_a_worker_that_was_not_waited_for_takes_nothing_from_what_others_used_meanwhile() -> None:
    assert ticks_between(FIRST, {JVM: Spent(1, 108, 0), DAEMON: Spent(10, 52, 0)}) == 8 + 2


@pytest.mark.parametrize("whole_ticks", [70, 73])
def test_a_worker_that_was_waited_for_is_counted_once(whole_ticks: int) -> None:
    assert ticks_between(FIRST, {JVM: Spent(1, 100, 0), DAEMON: Spent(10, 50, whole_ticks)}) == whole_ticks - 70


def test_a_worker_that_ended_with_its_parent_is_counted_once_with_the_parent_above() -> None:
    assert ticks_between(FIRST, {JVM: Spent(1, 100, 50 + 70 + 4)}) == 4


def test_who_began_since_the_last_look_counts_whole_also_where_it_ended() -> None:
    assert ticks_between(FIRST, {**FIRST, OTHER: Spent(20, 6, 2)}) == 8
    assert ticks_between(FIRST, {**FIRST, DAEMON: Spent(10, 50, 9)}) == 9


def test_a_number_that_is_given_again_is_another_process() -> None:
    again = ProcessId(WORKER.number, 99)
    assert ticks_between(FIRST, {JVM: FIRST[JVM], DAEMON: Spent(10, 50, 71), again: Spent(20, 3, 0)}) == 1 + 3


def test_processes_that_have_all_ended_used_nothing_more() -> None:
    assert ticks_between(FIRST, {}) == 0
