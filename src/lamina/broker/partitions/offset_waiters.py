"""Who waits until something reaches an offset: a high watermark, a low watermark.

Owns the list of them, in the order of their offsets, and whose turn it is to be told. Each is told once; one that fails
takes nothing from the others. Must not know what the offsets mean.
"""

import asyncio
import logging
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from itertools import count
from operator import itemgetter

from lamina.errors import KafkaError

logger = logging.getLogger(__name__)

Waiter = Callable[[KafkaError | None], None]
"""Told once, with the reason where nothing can be promised."""

AT_A_TIME = 25
"""So many are told in one turn of the loop: one may send a response, which takes 40 microseconds."""

_OFFSET = itemgetter(0)


class OffsetWaiters:
    __slots__ = ("_due", "_is_telling", "_name", "_numbers", "_places", "_waiting", "on_failure")

    def __init__(self, name: str) -> None:
        """``name`` is that of what is waited for."""
        self._name = name
        self.on_failure: Callable[[], None] | None = None
        """Told that a waiter raised something: that is our fault, and nobody else's to handle."""
        self._waiting: list[tuple[int, int, Waiter]] = []
        """By offset, then in the order in which they came, which is nearly always the same."""
        self._places: dict[Waiter, tuple[int, int]] = {}
        self._numbers = count()
        self._due: deque[tuple[Waiter, KafkaError | None]] = deque()
        self._is_telling = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, waiter: Waiter) -> None:
        number = next(self._numbers)
        self._places[waiter] = (offset, number)
        insort(self._waiting, (offset, number, waiter))

    def reached(self, offset: int, error: KafkaError | None) -> None:
        """Tell those who waited for ``offset`` or one below it."""
        end = bisect_right(self._waiting, offset, key=_OFFSET)
        reached = self._waiting[:end]
        del self._waiting[:end]
        self._tell(reached, error)

    def forget(self, waiter: Waiter) -> None:
        """Not to be told any more: it waited long enough."""
        place = self._places.pop(waiter, None)
        if place is not None:
            del self._waiting[bisect_left(self._waiting, place, key=itemgetter(0, 1))]

    def fail(self, error: KafkaError) -> None:
        """Tell all that what they wait for will not come."""
        waiting, self._waiting = self._waiting, []
        self._tell(waiting, error)

    def tell(self, waiter: Waiter, error: KafkaError | None) -> None:
        """Tell one that need not wait: at once, unless others are to be told before it."""
        if self._is_telling:
            self._due.append((waiter, error))
        else:
            waiter(error)

    def _tell(self, waiting: Iterable[tuple[int, int, Waiter]], error: KafkaError | None) -> None:
        for _, _, waiter in waiting:
            self._places.pop(waiter, None)
            self._due.append((waiter, error))
        if not self._is_telling:
            self._tell_due()

    def _tell_due(self) -> None:
        self._is_telling, left = True, AT_A_TIME
        while self._due and left:
            waiter, error = self._due.popleft()
            left -= 1
            try:
                waiter(error)
            except Exception as failure:
                logger.error("one who waited for %s failed", self._name, exc_info=failure)
                if self.on_failure is not None:
                    self.on_failure()
        self._is_telling = bool(self._due)
        if self._due:
            # What they do is no part of the request that let them go on.
            asyncio.get_running_loop().call_soon(self._tell_due, context=Context())
