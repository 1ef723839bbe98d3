"""``kill -USR1``: what every thread and every task is doing, to find out why a broker hangs.

Threads are written straight to standard error by the signal handler itself, which Python runs between two steps of the
main thread, so that a loop which no longer turns is seen as well; tasks follow in the log when the loop gets to it. The
broker goes on: frames are looked at with the interpreter's lock held, never behind its back. Must not know what the
work is.
"""

import asyncio
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import CodeType, FrameType

logger = logging.getLogger(__name__)

_TASKS = 200
_FRAMES = 12


@contextmanager
def dumping_on_signal(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Only the main thread hears signals; elsewhere this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def dump(_number: int, _frame: FrameType | None) -> None:
        print(describe_threads(), file=sys.__stderr__ or sys.stderr, flush=True)
        loop.call_soon_threadsafe(_log_tasks, loop)

    before = signal.signal(signal.SIGUSR1, dump)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def describe_threads() -> str:
    """What every thread is doing, innermost last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for ident, frame in sys._current_frames().items():
        lines.append(f"Thread {names.get(ident, '?')} ({ident}):")
        lines += [line.rstrip("\n") for line in traceback.format_stack(frame)]
    return "\n".join(lines)


def _log_tasks(loop: asyncio.AbstractEventLoop) -> None:
    logger.warning("%s", describe_tasks(loop))


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """One line a task with what it waits at, innermost last; no more of either than a person reads."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [f"{len(tasks)} tasks on the loop"]
    lines += [f"  {task.get_name()}: {' > '.join(islice(_frames(task), _FRAMES))}" for task in tasks[:_TASKS]]
    if len(tasks) > _TASKS:
        lines.append(f"  and {len(tasks) - _TASKS} more")
    return "\n".join(lines)


def _frames(task: "asyncio.Task[object]") -> Iterator[str]:
    """From the task's own coroutine down to what it awaits: ``Task.get_stack`` knows only the first."""
    coroutine: object = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if not isinstance(frame, FrameType):
            return
        code: CodeType = frame.f_code
        yield f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
        coroutine = getattr(coroutine, "cr_await", None)
