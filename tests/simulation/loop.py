"""One virtual event loop for many processes: time is simulated, and nothing is read from or written to the system.

Owns time and what runs next. Every callback belongs to a process, known by a context variable. Within a process
callbacks run in the order that asyncio promises; which process comes next is drawn. When nobody is ready, time jumps to
the next timer. A process can be killed (nothing of it runs again, and nothing is unwound), paused (its callbacks wait
while time goes on) and resumed. Must not know what processes do.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEP_NS = 5_000
"""What a callback takes: so no process can keep time from going on."""

PROCESS: ContextVar["Process"] = ContextVar("process")


class Stuck(Exception):
    """Nothing can happen any more, or it takes too long, and somebody still waits."""


class Process:
    """One life of a node, or a client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.context = Context()
        self.context.run(PROCESS.set, self)
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.is_dead = False
        self.is_paused = False
        self.has_run = False
        """Since somebody who looks at it said no."""
        self._remains: list[asyncio.Task[Any]] = []
        """Of the dead. A coroutine that is forgotten would be unwound, and its files closed, as by a tidy end."""

    @property
    def can_run(self) -> bool:
        return bool(self.ready) and not self.is_dead and not self.is_paused

    def die(self) -> None:
        self.is_dead = True
        self._remains = list(self.tasks)


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng
        self.now_ns = 0
        self.on_idle: Callable[[], None] | None = None
        """Called when nobody is ready, before time jumps: everything that follows from the last event has happened."""
        self.on_exception: Callable[[dict[str, Any]], None] | None = None
        """Told what nobody caught, as asyncio's exception handlers are."""
        self._processes: list[Process] = []
        self._runnable: list[Process] = []
        self.world = self._current = self.new_process("world")
        self._timers: list[tuple[int, int, asyncio.TimerHandle, Process]] = []
        self._numbers = 0

    # Processes

    def new_process(self, name: str) -> Process:
        process = Process(name)
        self._processes.append(process)
        return process

    @property
    def current(self) -> Process:
        """Whose callback runs."""
        return self._current

    def spawn(self, process: Process, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """A task of another process than the one that runs."""
        return process.context.copy().run(self.create_task, coroutine)

    def call_in(self, process: Process, callback: Callable[..., object], *args: Any) -> None:
        """A callback of another process, in the order of these calls."""
        self.call_soon(callback, *args, context=process.context)

    def kill(self, process: Process) -> None:
        process.die()
        self._look_at(process)

    def pause(self, process: Process) -> None:
        process.is_paused = True
        self._look_at(process)

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._look_at(process)

    def _look_at(self, process: Process) -> None:
        """Whether it can run may have changed."""
        if process.can_run and process not in self._runnable:
            self._runnable.append(process)
        elif not process.can_run and process in self._runnable:
            self._runnable.remove(process)

    # What asyncio calls

    def time(self) -> float:
        return self.now_ns / 1_000_000_000

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.is_closed():
            self._make_ready(handle, self._owner(context))
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        heapq.heappush(self._timers, (round(when * 1_000_000_000), self._numbers, handle, self._owner(context)))
        return handle

    def _owner(self, context: Context | None) -> Process:
        """A context that names nobody is of the process that gives it."""
        return self._current if context is None else context.get(PROCESS, self._current)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is thrown away when it is due."""

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> Any:
        context = context or copy_context()
        # Named, because asyncio counts the names that it gives: they would differ from run to run.
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name="task", context=context)
        self._owner(context).tasks.add(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.on_exception is not None and not self.is_closed() and not self._current.is_dead:
            self.on_exception(context)

    # Running

    def run(self, main: Coroutine[Any, Any, T], *, limit_s: float = 3600.0) -> T:
        """Run until the world's own coroutine is done. Raises :class:`Stuck` when that cannot be, or takes longer."""
        limit_ns = self.now_ns + round(limit_s * 1_000_000_000)
        asyncio._set_running_loop(self)
        try:
            task = self.spawn(self.world, main)
            while not task.done():
                if self.now_ns > limit_ns:
                    raise Stuck(f"it takes more than {limit_s:g} s")
                self._run_ready()
                if not task.done():
                    self._go_on_in_time()
            return task.result()
        finally:
            asyncio._set_running_loop(None)

    def _run_ready(self) -> None:
        """Until nobody is ready. Written out, because a world spends its time here."""
        runnable, timers, random = self._runnable, self._timers, self._rng.random
        while True:
            if timers and timers[0][0] <= self.now_ns:
                self._wake_due()
            if not runnable:
                return
            count = len(runnable)
            process = runnable[0 if count == 1 else int(random() * count)]
            ready = process.ready
            handle = ready.popleft()
            if not ready:
                runnable.remove(process)
            if not handle._cancelled:
                self._current = process
                process.has_run = True
                handle._run()
                self.now_ns += STEP_NS
                if process is self.world:
                    # The world's own coroutine may be done.
                    return

    def _go_on_in_time(self) -> None:
        if self._runnable:
            return
        if self.on_idle is not None:
            self.on_idle()
        if not self._timers:
            raise Stuck("nothing can happen any more")
        self.now_ns = max(self.now_ns, self._timers[0][0])

    def _wake_due(self) -> None:
        timers, now_ns = self._timers, self.now_ns
        while timers and timers[0][0] <= now_ns:
            _, _, handle, process = heapq.heappop(timers)
            if not handle._cancelled and not process.is_dead:
                self._make_ready(handle, process)

    def _make_ready(self, handle: asyncio.Handle, process: Process) -> None:
        ready = process.ready
        ready.append(handle)
        if len(ready) == 1 and not process.is_dead and not process.is_paused:
            self._runnable.append(process)

    def close(self) -> None:
        """End what is left, without a word of it."""
        super().close()
        for process in self._processes:
            for task in list(process.tasks):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                if not task.done():
                    # What it does while it is unwound concerns nobody any more.
                    with suppress(BaseException):
                        task.get_coro().close()
