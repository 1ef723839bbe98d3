"""One of Kafka's tools that runs for a while and says what it does, an event of JSON on each line.

Owns the process and what it said. Must not know what the events mean.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tests.peers.kafka import KafkaFailedError, tool_command

Event = dict[str, Any]

WAIT_SECONDS = 120.0


class ToolProcess:
    """Runs as long as the context does, unless it ends by itself."""

    def __init__(self, main_class: str, *arguments: str) -> None:
        self.events: list[Event] = []
        self._counts: Counter[str] = Counter()
        self._other_lines: list[str] = []
        self._command = tool_command(main_class, *arguments)
        self._process: subprocess.Popen[str] | None = None
        self._has_ended = False
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._read, name=main_class, daemon=True)

    def __enter__(self) -> ToolProcess:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()

    def stop(self) -> None:
        """As Ctrl-C would: it says its last words."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self.await_end()

    def await_end(self) -> None:
        self._await(lambda: self._has_ended)

    def named(self, name: str) -> list[Event]:
        """The events of one kind so far."""
        with self._progress:
            return [event for event in self.events if event["name"] == name]

    def await_named(self, name: str, count: int) -> None:
        self._await(lambda: self._counts[name] >= count)

    def _await(self, holds: Callable[[], bool]) -> None:
        with self._progress:
            self._progress.wait_for(lambda: self._has_ended or holds(), WAIT_SECONDS)
            if not holds():
                last = "\n".join([*self._other_lines[-20:], *map(str, self.events[-3:])])
                raise KafkaFailedError(f"{' '.join(self._command[-8:])} did not come so far; its last lines:\n{last}")

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._progress:
                if line.startswith("{"):
                    self.events.append(json.loads(line))
                    self._counts[self.events[-1]["name"]] += 1
                else:
                    self._other_lines.append(line.rstrip())
                self._progress.notify_all()
        with self._progress:
            self._has_ended = True
            self._progress.notify_all()
