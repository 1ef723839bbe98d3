"""A broker on a loop that times every callback: ``python -m bench.timed_loop REPORT serve …``.

At SIGUSR2 it writes the longest callbacks since the last SIGUSR2 to the file REPORT, and at the end those of the stop.
Time is CPU time of the loop's thread, so that a busy machine does not count. A collection of garbage on another thread
holds up the loop as well, and stands among the callbacks. Only this broker pays for it: its loop is a subclass of the
ordinary one.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import inspect
import json
import signal
import sys
import threading
import time
from asyncio import Handle, TimerHandle
from collections.abc import Callable, Mapping
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVarTuple

import uvloop

from lamina.cli import main

KEPT = 10

_Ts = TypeVarTuple("_Ts")


class TimedLoop(uvloop.Loop):
    """Every way into the loop wraps what it is given; tasks and futures come in through `call_soon`."""

    def __init__(self, report: Path) -> None:
        super().__init__()
        self._report = report
        self._longest: list[tuple[int, str]] = []
        """CPU nanoseconds and names of the longest callbacks, a heap."""
        self._collection_began_ns = 0
        self.add_signal_handler(signal.SIGUSR2, self._write)
        gc.callbacks.append(self._collecting)

    def close(self) -> None:
        gc.callbacks.remove(self._collecting)
        super().close()
        self._write()

    def _write(self) -> None:
        unfinished = self._report.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(sorted(self._longest, reverse=True)))
        unfinished.rename(self._report)
        self._longest.clear()

    def _collecting(self, phase: str, _: Mapping[str, int]) -> None:
        thread = threading.current_thread()
        if thread is threading.main_thread():
            return  # It is part of a callback.
        if phase == "start":
            self._collection_began_ns = time.thread_time_ns()
        else:
            self._note(time.thread_time_ns() - self._collection_began_ns, f"collection on {thread.name}")

    def _timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started_ns = time.thread_time_ns()
            try:
                return callback(*arguments)
            finally:
                self._note(time.thread_time_ns() - started_ns, callback)

        return run

    def _note(self, cpu_ns: int, what: Callable[..., Any] | str) -> None:
        if len(self._longest) < KEPT:
            heapq.heappush(self._longest, (cpu_ns, _name(what)))
        elif cpu_ns > self._longest[0][0]:
            heapq.heapreplace(self._longest, (cpu_ns, _name(what)))

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


def _name(callback: Callable[..., Any] | str) -> str:
    """Of a task's step the coroutines that wait for each other, outermost first; else the callback's own name."""
    if isinstance(callback, str):
        return callback
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    names = []
    coroutine: Any = owner.get_coro()
    while inspect.iscoroutine(coroutine):
        names.append(coroutine.__qualname__)
        coroutine = coroutine.cr_await
    return " → ".join(names)


if __name__ == "__main__":
    target = Path(sys.argv.pop(1))
    uvloop.new_event_loop = lambda: TimedLoop(target)
    main()
