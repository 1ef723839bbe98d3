"""Tasks of a pass in parallel, on the threads of a pool. When one fails, no more begin; the running ones are awaited.

Must not know what the tasks do.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run_all(pool: ThreadPoolExecutor, tasks: Sequence[Callable[[], T]]) -> list[T]:
    """The results of all tasks, in order."""
    return list(run_in_order(pool, tasks, len(tasks)))


def run_in_order(pool: ThreadPoolExecutor, tasks: Iterable[Callable[[], T]], ahead: int) -> Iterator[T]:
    """The results of all tasks, in order; so many are begun before their results are asked for."""
    begun: deque[Future[T]] = deque()
    try:
        for task in tasks:
            begun.append(pool.submit(task))
            if len(begun) > ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()
        for future in begun:
            if not future.cancelled():
                future.exception()
