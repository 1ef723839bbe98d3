"""A process that can be found again, from any other process, and never mistaken for another one.

It is started with an open file on which an exclusive ``flock`` is held; the file holds its pid. The lock belongs to
the open file, not to who took it, so it lives exactly as long as the process: while it is held the pid is that of this
process, and once the process is gone, however it went, the lock is free and the pid means nothing. Must not know what
runs.
"""

import fcntl
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lamina.cluster.errors import ClusterError

UNKNOWN_PID = 0
"""It runs, but whoever started it did not live to write its pid down."""


def start_guarded(
    command: Sequence[str], guard: Path, *, log: Path, out: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Start it in a session of its own: Ctrl-C in this terminal is not meant for it.

    Without ``out``, what it prints goes to its log too.
    """
    guard_fd = _open_locked(guard)
    try:
        os.ftruncate(guard_fd, 0)
        with open(log, "ab") as logged, open(log, "ab") if out is None else open(out, "wb") as printed:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=logged,
                pass_fds=(guard_fd,),
                start_new_session=True,
            )
        os.pwrite(guard_fd, f"{process.pid}\n".encode(), 0)
    finally:
        os.close(guard_fd)
    return process


def hold_guard(guard: Path) -> int:
    """Guard this process itself; the lock goes with it, or when the descriptor is closed."""
    guard_fd = _open_locked(guard)
    os.ftruncate(guard_fd, 0)
    os.pwrite(guard_fd, f"{os.getpid()}\n".encode(), 0)
    return guard_fd


def guarded_pid(guard: Path) -> int | None:
    """The process that runs under a guard; ``None`` when none does."""
    try:
        guard_fd = os.open(guard, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who ask at once do not see each other.
        fcntl.flock(guard_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        text = os.pread(guard_fd, 32, 0).strip()
        return int(text) if text.isdigit() else UNKNOWN_PID
    finally:
        os.close(guard_fd)


def send_signal(guard: Path, number: signal.Signals) -> bool:
    """To the guarded process and no other; ``False`` when it does not run."""
    pid = guarded_pid(guard)
    if pid is None:
        return False
    if pid == UNKNOWN_PID:
        raise ClusterError(f"a process holds {guard}, but its number is not written there: end it yourself")
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _open_locked(guard: Path) -> int:
    guard_fd = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(guard_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(guard_fd)
        pid = guarded_pid(guard)
        raise ClusterError(f"{guard.stem} is already running{f' (process {pid})' if pid else ''}") from None
    return guard_fd
