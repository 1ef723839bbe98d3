"""A real broker in a process of its own, on a free port, for tests that need the whole of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.broker.fork_server import ForkedProcess, fork

COMMAND = [sys.executable, "-c", "from lamina.cli import main; main()"]
SOURCES = Path(__file__).parents[2] / "src"
NO_SPARK = ("--set", "lamina.spark.master=none")
"""Starting Spark takes ten seconds: a test that is not about it has its logs cleaned without."""
START_SECONDS = 60.0
STOP_SECONDS = 30.0


def keep_port(port: int = 0) -> socket.socket:
    """A port that is bound and not listened on: nobody else is given it, and a broker that asks for it gets it."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", port))
    return kept


class BrokerProcess:
    """``lamina serve``: started by :meth:`start`, known to be ready by its first line."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        self.arguments = arguments
        self.listen = "127.0.0.1:0"
        self.open_files: int | None = None
        """How many descriptors it may have; what this process may have unless given."""
        self.facts: dict[str, Any] = {}
        """The first line of the last start."""
        self.log: list[str] = []
        """What was logged so far, by all starts."""
        self._logged = threading.Condition()
        self._keeps_port = False
        self._kept: socket.socket | None = None
        self._process: ForkedProcess | subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []

    # Life

    def start(self) -> "BrokerProcess":
        self._process = self._begin()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        first_line: list[str] = []
        ready = threading.Event()
        out, err = self._process.stdout, self._process.stderr

        def read_out() -> None:
            first_line.append(out.readline())
            ready.set()
            for _ in out:
                pass

        def read_err() -> None:
            for line in err:
                with self._logged:
                    self.log.append(line.rstrip("\n"))
                    self._logged.notify_all()

        self._threads = [threading.Thread(target=target, daemon=True) for target in (read_out, read_err)]
        for thread in self._threads:
            thread.start()
        assert ready.wait(START_SECONDS), self.log
        if not first_line[0]:
            self.wait()
            raise AssertionError(f"the broker did not start: {self.log}")
        self.facts = json.loads(first_line[0])
        self._give_port_up()
        return self

    def _begin(self) -> "ForkedProcess | subprocess.Popen[str]":
        arguments = ["serve", "--data-dir", str(self.data_dir), "--listen", self.listen, *NO_SPARK, *self.arguments]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        if self.open_files is None:
            return fork(arguments, environment)
        limited = ["sh", "-c", f'ulimit -n {self.open_files} && exec "$@"', "limited", *COMMAND, *arguments]
        return subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def stop(self) -> None:
        """SIGTERM: the broker must end by itself, with status 0."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, f"status {status}: {self.log}"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self.wait()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """The status that it ends with."""
        assert self._process is not None
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the broker did not end: {self.log}") from None
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        self._process = None
        if self._keeps_port:
            self._kept = keep_port(self.port)
        return status

    def keep_port(self) -> None:
        """Clients that are there now find it again after the next start."""
        self.listen = self.address
        self._keeps_port = True
        self.arguments += ("--set", "lamina.admin.listeners=127.0.0.1:0")

    def restart(self) -> "BrokerProcess":
        self.stop()
        return self.start()

    def __enter__(self) -> "BrokerProcess":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            if self._process is None:
                return
            if kind is None:
                self.stop()
            else:
                self.kill()
                print("\n".join(self.log))
        finally:
            self._give_port_up()

    def _give_port_up(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    # Looking at it

    @property
    def pid(self) -> int:
        return int(self.facts["pid"])

    @property
    def port(self) -> int:
        return int(self.facts["listening"][0]["port"])

    @property
    def address(self) -> str:
        return str(self.facts["listening"][0]["address"])

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "logs"

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def resident_bytes(self) -> int:
        """Memory that the process holds now."""
        return self._status_kb("VmRSS")

    def peak_bytes(self) -> int:
        """The most memory that the process ever held."""
        return self._status_kb("VmHWM")

    def _status_kb(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        raise AssertionError(name)

    def wait_for_log(self, text: str, since: int = 0, seconds: float = 30) -> str:
        """The first line from number ``since`` on that holds ``text``."""

        def found() -> str | None:
            return next((line for line in self.log[since:] if text in line), None)

        with self._logged:
            assert self._logged.wait_for(lambda: found() is not None, seconds), (text, self.log[since:])
            line = found()
        assert line is not None
        return line


def eventually(holds: Callable[[], bool], seconds: float = 30, what: Callable[[], object] = lambda: "") -> None:
    """Poll until ``holds``, or fail and say ``what`` there is instead."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it never came true: {what()}"
        time.sleep(0.01)
