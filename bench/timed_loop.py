"""A broker on a loop that times every callback: ``python -m bench.timed_loop REPORT serve …``.

At SIGUSR1 it writes the longest callbacks since the last SIGUSR1 to the file REPORT.
Time is CPU time of the loop's thread, so that a busy machine does not count. Only this broker pays for it: its
loop is a subclass of the ordinary one.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import json
import signal
import sys
import time
from asyncio import Handle, TimerHandle
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVarTuple

import uvloop

from lamina.cli import main

KEPT = 10

_Ts = TypeVarTuple("_Ts")


class TimedLoop(uvloop.Loop):
    """Every way into the loop wraps what it is given; tasks and futures come in through `call_soon`."""

    def __init__(self) -> None:
        super().__init__()
        self.longest: list[tuple[int, str]] = []
        """CPU nanoseconds and names of the longest callbacks, a heap."""

    def _timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started_ns = time.thread_time_ns()
            try:
                return callback(*arguments)
            finally:
                self._note(time.thread_time_ns() - started_ns, callback)

        return run

    def _note(self, cpu_ns: int, callback: Callable[..., Any]) -> None:
        if len(self.longest) < KEPT:
            heapq.heappush(self.longest, (cpu_ns, _name(callback)))
        elif cpu_ns > self.longest[0][0]:
            heapq.heapreplace(self.longest, (cpu_ns, _name(callback)))

    def call_soon(self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None) -> Handle:
        return super().call_soon(self._timed(callback), *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Handle:
        return super().call_soon_threadsafe(self._timed(callback), *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> TimerHandle:
        return super().call_later(delay, self._timed(callback), *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> TimerHandle:
        return super().call_at(when, self._timed(callback), *args, context=context)

    def add_reader(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> None:
        super().add_reader(fd, self._timed(callback), *args)

    def add_writer(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> None:
        super().add_writer(fd, self._timed(callback), *args)


def _name(callback: Callable[..., Any]) -> str:
    """Of a task's step the coroutines that wait for each other, outermost first; else the callback's own name."""
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    names = []
    coroutine: Any = owner.get_coro()
    while inspect.iscoroutine(coroutine):
        names.append(coroutine.__qualname__)
        coroutine = coroutine.cr_await
    return " → ".join(names)


def report_to(report: Path) -> TimedLoop:
    """The loop that the broker gets in place of uvloop's own."""
    loop = TimedLoop()

    def write() -> None:
        unfinished = report.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(sorted(loop.longest, reverse=True)))
        unfinished.rename(report)
        loop.longest.clear()

    loop.add_signal_handler(signal.SIGUSR1, write)
    return loop


if __name__ == "__main__":
    target = Path(sys.argv.pop(1))
    uvloop.new_event_loop = lambda: report_to(target)
    main()
