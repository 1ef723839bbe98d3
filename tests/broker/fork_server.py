"""Processes of ``lamina`` without the third of a second that Python takes to import it.

A server imports once what a broker imports, makes ready once what a broker makes ready of all APIs, and forks for each
process that a test starts: the child has its own arguments, environment, directory and pipes, and runs the very
``main`` of the command. That a fresh interpreter starts as well is shown by tests/cli/test_serve.py. The server ends
with the process that started it; what it forked does not.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from typing import IO

_REQUEST_BYTES = 1 << 20
_DESCRIPTORS = 3
"""Standard output, standard error, and where the process id and the status are told."""
_IMPORTED = (
    "lamina.broker.server",
    "lamina.cli.printing.progress",
    "lamina.cli.serve.log_lines",
    "lamina.cli.serve.start_lines",
    "uvloop",
)


class ForkedProcess:
    """What a test needs of ``subprocess.Popen``; the server is the parent."""

    def __init__(self, pid: int, stdout: IO[str], stderr: IO[str], status: socket.socket) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                told = self._status.recv(64)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0) from None
            self._status.close()
            assert told, "the fork server is gone"
            self.returncode = int(told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        try:
            self.wait(0)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_servers: dict[int, socket.socket] = {}
"""By the process that started it: a fork of this one has no server."""


def fork(arguments: list[str], environment: dict[str, str]) -> ForkedProcess:
    """``lamina`` with these arguments, in the directory of this process."""
    control = _servers.get(os.getpid()) or _start_server()
    out, child_out = os.pipe()
    err, child_err = os.pipe()
    status, child_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = {"arguments": arguments, "environment": environment, "directory": os.getcwd()}
    socket.send_fds(control, [json.dumps(request).encode()], [child_out, child_err, child_status.fileno()])
    os.close(child_out)
    os.close(child_err)
    child_status.close()
    pid = int(status.recv(64))
    return ForkedProcess(pid, open(out, encoding="utf-8"), open(err, encoding="utf-8"), status)


def _start_server() -> socket.socket:
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__, str(theirs.fileno())]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "PYTHONPATH": os.path.join(root, "src")}
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        cwd=root,
        env=environment,
    )
    theirs.close()

    def end() -> None:
        control.close()
        server.wait()

    atexit.register(end)
    _servers[os.getpid()] = control
    return control


def _serve(control: socket.socket) -> bool:
    """True in each process that was forked, False in the server once nobody wants it any more."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_ends(running)
        if control not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, _REQUEST_BYTES, _DESCRIPTORS)
        if not data:
            return False
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for kept in (control, woken, waker, *running.values()):
                kept.close()
            _become(json.loads(data), *descriptors)
            return True
        out, err, status = descriptors
        os.close(out)
        os.close(err)
        running[pid] = socket.socket(fileno=status)
        running[pid].send(b"%d" % pid)


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as told, suppress(OSError):  # Nobody may wait for it.
            told.send(b"%d" % os.waitstatus_to_exitcode(status))


def _become(request: dict[str, object], out: int, err: int, status: int) -> None:
    os.close(status)
    for descriptor, standard in ((out, 1), (err, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(str(request["directory"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = ["-c", *request["arguments"]]  # type: ignore[misc]


if __name__ == "__main__":
    for module in _IMPORTED:
        import_module(module)
    from lamina.broker.requests.api_table import APIS
    from lamina.broker.requests.warming import warm
    from lamina.cli import main

    warm(APIS, lambda: False)
    gc.collect()
    gc.freeze()

    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        main()
