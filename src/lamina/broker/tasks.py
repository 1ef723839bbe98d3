"""Tasks that somebody holds until they are done: the loop itself forgets those that nobody holds.

Owns which tasks of one owner are under way, in the order in which they began. Must not know what they do.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Tasks:
    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """``loop`` is to run them; without one, it is that in which each of them begins."""
        self._loop = loop
        # Not a set: who goes through it meets the tasks in the same order in every run.
        self._running: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator["asyncio.Task[Any]"]:
        return iter(tuple(self._running))

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = (self._loop or asyncio.get_running_loop()).create_task(work)
        self._running[task] = None
        task.add_done_callback(self._running.pop)
        return task

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that goes on to its end even if whoever waits for it gives up."""
        return await to_its_end(self.begin(work))

    def cancel(self) -> None:
        for task in self:
            task.cancel()

    async def wait(self) -> None:
        """Until all that are under way now are done, whatever becomes of them."""
        await asyncio.gather(*self, return_exceptions=True)


async def to_its_end(task: "asyncio.Task[T]") -> T:
    """The result of a task that goes on even if whoever waits for it gives up."""
    task.add_done_callback(_look_at)
    return await asyncio.shield(task)


def _look_at(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        # Asked for, so that asyncio does not complain of an error that nobody waits for any more.
        task.exception()
