"""CPU and memory of a process and all below it."""

import os
import subprocess
import sys

from bench.usage import Usage, cpu_seconds, resident_bytes

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
