"""What a Spark task does for one plan, or for one piece of it.

Owns the attempt's name, under which everything is written, and how a task says how far it is: a small file in the pass
folder, because a task cannot speak before its end. What goes wrong with a log is the task's result, not its failure:
Spark tries failed tasks again, and other logs are in the same job. Must not know how tasks are put together.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import NamedTuple

from pyspark import TaskContext

from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Failure, failure_of
from lamina.cleaning.failures import Cancelled, TooManyKeys
from lamina.cleaning.limits import Meter, throttle_of
from lamina.clocks import SYSTEM_CLOCKS, Clocks

PROGRESS = ".progress"
CANCELLED = "cancelled"
FOLDER_GONE = "the pass was given up: its folder is gone"
_DONE = Struct(">qd")
_TOLD_SECONDS = 0.2


class Done(NamedTuple):
    """What tasks have said of themselves."""

    size_bytes: int
    throttled_seconds: float


class Report:
    """A meter that notes in the pass folder how many bytes were read and written, and ends a cancelled pass."""

    def __init__(self, plan: Plan, name: str, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._clocks = clocks
        self._folder = plan.pass_folder
        self._path = f"{plan.pass_folder}/{name}{PROGRESS}"
        self._lock = threading.Lock()
        self._done_bytes = 0
        self.throttled_seconds = 0.0
        self._told_at = self._clocks.monotonic_seconds()

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            now = self._clocks.monotonic_seconds()
            if now - self._told_at < _TOLD_SECONDS:
                return
            self._told_at = now
            self.tell()

    def tell(self) -> None:
        if os.path.exists(f"{self._folder}/{CANCELLED}"):
            raise Cancelled("the pass was cancelled")
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise Cancelled(FOLDER_GONE) from None
        try:
            os.pwrite(file, _DONE.pack(self._done_bytes, self.throttled_seconds), 0)
        finally:
            os.close(file)


def read_progress(plan: Plan) -> Done:
    """How many bytes all tasks of a plan together have read and written, and how long they had to wait, as far as they
    have said."""
    done = Done(0, 0.0)
    try:
        with os.scandir(plan.pass_folder) as entries:
            paths = [entry.path for entry in entries if entry.name.endswith(PROGRESS) and entry.is_file()]
        for path in paths:
            with open(path, "rb") as file:
                said = file.read(_DONE.size)
            if len(said) == _DONE.size:
                size_bytes, throttled_seconds = _DONE.unpack(said)
                done = Done(done.size_bytes + size_bytes, done.throttled_seconds + throttled_seconds)
    except FileNotFoundError:
        return Done(0, 0.0)
    return done


def attempt_name() -> str:
    """The name of this attempt at this task: no other has it, as long as the engine lives."""
    context = TaskContext.get()
    assert context is not None
    return f"a{context.taskAttemptId()}"


def clean_alone(plan: Plan, threads: int) -> Manifest | Failure | TooManyKeys:
    """A whole pass in this task."""
    report = Report(plan, "whole")
    try:
        report.tell()
        return clean_log(plan, attempt_name(), threads=threads, has_shuffle=True, meter=report)
    except TooManyKeys as error:
        return error
    except Exception as error:
        return failure_of(plan, error)


@contextmanager
def spending(plan: Plan, name: str) -> Iterator[Meter]:
    """The meter of a piece of a pass: reports, keeps to the limit, and says in the end how long it had to wait."""
    report = Report(plan, name)
    report.tell()
    throttle = throttle_of(plan)
    if throttle is None:
        yield report
        return

    def spend(size_bytes: int) -> None:
        report(size_bytes)
        throttle(size_bytes)

    yield spend
    report.throttled_seconds = throttle.finish()
    report.tell()


def describe_worker(number: int) -> tuple[int, int]:
    """For a job that does nothing: which process did which piece."""
    return number, os.getpid()
