"""A process that copies one topic to another, each record exactly once, and can be killed; and what it told."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tests.cluster.copying import SEPARATOR
from tests.cluster.verifiable_producer import WAIT_SECONDS, Now, monotonic_ms
from tests.history.events import Assigned, History, Partition, Read, Send, SendOutcome, TransactionOutcome


class Failure(NamedTuple):
    error: str
    is_fatal: bool
    """Fenced, for one."""


Event = list[Any]


def copied_value(value: bytes) -> bytes:
    """What was read, from what was written of it."""
    return value.partition(SEPARATOR)[0]


class CopyProcess:
    """As a context."""

    def __init__(self, bootstrap: str, source: str, target: str, name: str, a_transaction: int, kept: Path) -> None:
        """All that it tells is ``kept`` in a file."""
        self.events: list[Event] = []
        self.copied = 0
        """Committed."""
        self.failure: Failure | None = None
        self._progress = threading.Condition()
        self.name = name
        self._kept = kept
        self.source = source
        self.target = target
        words = (bootstrap, source, target, name, str(a_transaction))
        self._command = [sys.executable, "-m", "tests.cluster.copying", *words]
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)

    def __enter__(self) -> "CopyProcess":
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        assert self._process is not None
        if kind is not None:
            self._process.kill()
        self.stop()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        """Returns when all that it told is known."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._thread.join()
        self._process.wait()

    def await_failure(self, seconds: float = WAIT_SECONDS) -> Failure:
        with self._progress:
            self._progress.wait_for(lambda: self.failure is not None, seconds)
        assert self.failure is not None, f"it did not fail within {seconds:g} s"
        return self.failure

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as lines, self._kept.open("w", encoding="utf-8") as kept:
            for line in lines:
                kept.write(line)
                event = json.loads(line) if line.endswith("\n") else ["cut off"]
                if event[0] == "failed":
                    self._fail(Failure(*event[1:]))
                else:
                    self._tell(*event)

    def _tell(self, *event: Any) -> None:
        with self._progress:
            self.events.append(list(event))
            if event[0] == "ended" and event[2] == TransactionOutcome.COMMITTED:
                self.copied += event[3]
            self._progress.notify_all()

    def _fail(self, failure: Failure) -> None:
        with self._progress:
            self.failure = failure
            self._progress.notify_all()

    def add_to(self, history: History, now_ms: Now) -> None:
        """What it did, as the history of two clients: a reader and a producer."""
        ahead_ms = monotonic_ms() - now_ms()
        sends: dict[str, int] = {}
        for name, *facts in self.events:
            if name == "assigned":
                history.moves += [Assigned(self.name, (self.source, one), None) for one in facts[0]]
            elif name == "read":
                transaction, index, offset, text, at_ms = facts
                place: Partition = self.source, index
                history.moves.append(Read(self.name, place, offset, text.encode(), at_ms - ahead_ms, transaction))
            elif name == "sent":
                transaction, index, text, began_ms = facts
                sends[text] = len(history.sends)
                history.sends.append(
                    Send(
                        self.name,
                        (self.target, index),
                        text.encode(),
                        SendOutcome.UNKNOWN,
                        None,
                        began_ms - ahead_ms,
                        transaction=transaction,
                    )
                )
            elif name == "acked":
                index, text, offset, at_ms = facts
                history.sends[sends[text]] = replace(
                    history.sends[sends[text]],
                    outcome=SendOutcome.ACKED,
                    offset=offset if offset >= 0 else None,
                    ended_ms=at_ms - ahead_ms,
                )
            elif name == "ended":
                history.transactions[facts[0]] = TransactionOutcome(facts[1])
