"""``lamina serve`` on a port that is known before it starts, for tests and benchmarks that put it where a Kafka was.

Owns the broker process and what it logged. Must not know what is asked of it.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from lamina.cluster.ports import free_port
from tests.broker.process import COMMAND

STOP_SECONDS = 30


class LaminaFailedError(Exception):
    """The broker ended or did not say that it is ready; the message shows what it printed."""


class Lamina:
    """One broker over `root/data`, on a port of its own."""

    def __init__(self, root: Path, settings: Mapping[str, str] | None = None, command: Sequence[str] = COMMAND) -> None:
        self.root = root
        self.data_directory = root / "data"
        self._log = root / "log.txt"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        root.mkdir(parents=True, exist_ok=True)
        given = {"lamina.admin.listeners": "127.0.0.1:0", **(settings or {})}
        sets = [argument for name, value in given.items() for argument in ("--set", f"{name}={value}")]
        self._command = [*command, "serve", "--data-dir", str(self.data_directory), "--listen", self.bootstrap, *sets]

    def __enter__(self) -> Lamina:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.kill()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def process_ids(self) -> tuple[int, ...]:
        """None while it does not run."""
        return () if self._process is None else (self._process.pid,)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def format(self) -> None:
        """Nothing: a data directory needs no preparation."""

    def launch(self) -> None:
        """Starts the process and waits for nothing."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log)

    def start(self) -> None:
        """Starts the broker and returns once it takes connections."""
        self.launch()
        self.await_start()

    def await_start(self) -> None:
        """Returns once the broker that was launched takes connections, which its first line says."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.kill()
            raise LaminaFailedError(f"the broker did not start:\n{self.logged()}")

    def logged(self) -> str:
        return self._log.read_text()

    def send_signal(self, sent: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(sent)

    def stop(self) -> None:
        """A clean shutdown."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, or nothing if the broker is not running."""
        self._end(signal.SIGKILL)

    def _end(self, sent: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(sent)
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            self._process.communicate()
            raise LaminaFailedError(f"the broker did not stop within {STOP_SECONDS} s of {sent.name}") from late
        finally:
            self._process = None
