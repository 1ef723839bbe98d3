"""What a Spark task does for one plan, or for one piece of it.

Owns the attempt's name, under which everything is written, and how a task says how far it is: a small file in the pass
folder, because a task cannot speak before its end. What goes wrong with a log is the task's result, not its failure:
Spark tries failed tasks again, and other logs are in the same job. Must not know how tasks are put together.
"""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from struct import Struct

from pyspark import TaskContext

from lamina.cleaning.answers import Failure, failure_of
from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.failures import CleaningFailed, TooManyKeys
from lamina.cleaning.throttle import Meter, Throttle

PROGRESS = ".progress"
CANCELLED = "cancelled"
FOLDER_GONE = "the pass was given up: its folder is gone"
_DONE = Struct(">q")
_TOLD_SECONDS = 0.2


class Cancelled(CleaningFailed):
    """Nobody wants the result any more."""


class Report:
    """A meter that notes in the pass folder how many bytes were read and written, and ends a cancelled pass."""

    def __init__(self, plan: Plan, name: str) -> None:
        self._folder = plan.pass_folder
        self._path = f"{plan.pass_folder}/{name}{PROGRESS}"
        self._lock = threading.Lock()
        self._done_bytes = 0
        self._told_at = time.monotonic()

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            now = time.monotonic()
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
            os.pwrite(file, _DONE.pack(self._done_bytes), 0)
        finally:
            os.close(file)


def read_progress(plan: Plan) -> int:
    """The bytes that all tasks of a plan together have read and written, as far as they have said."""
    done_bytes = 0
    try:
        with os.scandir(plan.pass_folder) as entries:
            paths = [entry.path for entry in entries if entry.name.endswith(PROGRESS) and entry.is_file()]
        for path in paths:
            with open(path, "rb") as file:
                said = file.read(_DONE.size)
            if len(said) == _DONE.size:
                done_bytes += _DONE.unpack(said)[0]
    except FileNotFoundError:
        return 0
    return done_bytes


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
        return clean_log(plan, attempt_name(), threads=threads, meter=report)
    except TooManyKeys as error:
        return error
    except Exception as error:
        return failure_of(plan, error)


def spending(plan: Plan, name: str) -> Meter:
    """The meter of a piece of a pass: reports, and keeps to the plan's share of the limit."""
    report = Report(plan, name)
    report.tell()
    if plan.throttle_bytes_per_second is None:
        return report
    throttle = Throttle(plan.throttle_bytes_per_second)

    def spend(size_bytes: int) -> None:
        report(size_bytes)
        throttle(size_bytes)

    return spend


def share(plan: Plan, tasks: int) -> Plan:
    """The plan for one of so many tasks at the same time: what all of them may take is divided (fact 97)."""
    rate = plan.throttle_bytes_per_second
    return replace(
        plan,
        memory_limit_bytes=max(plan.memory_limit_bytes // tasks, 1),
        throttle_bytes_per_second=None if rate is None else rate / tasks,
    )


def describe_worker(number: int) -> tuple[int, int]:
    """For a job that does nothing: which process did which piece."""
    return number, os.getpid()


def threads_of(plans: Sequence[Plan], slots: int) -> list[int]:
    """How many threads each pass of a batch gets: its share of the slots by its size, at least one."""
    sizes = [sum(segment.size_bytes for segment in plan.segments) for plan in plans]
    total = sum(sizes) or 1
    return [min(max(round(slots * size / total), 1), slots) for size in sizes]
