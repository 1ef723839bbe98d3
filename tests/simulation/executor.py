"""Threads of a simulated process: work is done on the loop, at a drawn moment.

Owns when: as many pieces of work at a time as there are threads, each begun in order, with a wait before it is done and
another before its result is known. Work of a process that is killed meanwhile is never done, or its result never known.
Must not know what the work is.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

from tests.simulation.loop import VirtualLoop

_SLOW = 0.05
"""The share of work that waits for a busy disk."""


class SimulatedExecutor(Executor):
    def __init__(self, loop: VirtualLoop, rng: Random, count: int) -> None:
        self._loop = loop
        self._rng = rng
        self._free = count
        self._queue: deque[_Work] = deque()
        self._under_way: list[_Work] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        one = _Work(lambda: work(*args, **named))
        self._queue.append(one)
        self._begin_next()
        return one.future

    def _begin_next(self) -> None:
        while self._free and self._queue:
            one = self._queue.popleft()
            if one.future.set_running_or_notify_cancel():
                self._free -= 1
                self._under_way.append(one)
                self._loop.call_later(self._delay(), self._do, one)

    def _delay(self) -> float:
        chance = self._rng.random()
        return self._rng.uniform(0.005, 0.05) if chance < _SLOW else chance * 0.0004

    def _do(self, one: "_Work") -> None:
        one.do()
        self._loop.call_later(self._delay(), self._tell, one)

    def _tell(self, one: "_Work") -> None:
        if one in self._under_way:
            self._under_way.remove(one)
            self._free += 1
            one.tell()
            self._begin_next()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish at once what has begun, and what waits, unless it is cancelled."""
        queued = list(self._queue)
        self._queue.clear()
        for one in queued:
            if cancel_futures:
                one.future.cancel()
            elif one.future.set_running_or_notify_cancel():
                self._under_way.append(one)
        for one in self._under_way:
            one.do()
            one.tell()
        self._under_way.clear()


class _Work:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        self._work: Callable[[], Any] | None = work
        self._result: Any = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """Once."""
        work, self._work = self._work, None
        if work is not None:
            try:
                self._result = work()
            except BaseException as error:
                self._error = error

    def tell(self) -> None:
        if self._error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self._error)
