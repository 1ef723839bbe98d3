"""Who waits until something reaches an offset: a high watermark, a low watermark.

Owns the list of them, in the order of their offsets. Each is told once, when it is due. Must not know what the offsets
mean.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from itertools import count
from operator import itemgetter

from lamina.errors import KafkaError
from lamina.log.due_waiters import DueWaiters

Waiter = Callable[[KafkaError | None], None]
"""Told once, with the reason where nothing can be promised."""

_OFFSET = itemgetter(0)


class OffsetWaiters:
    __slots__ = ("_due", "_name", "_numbers", "_places", "_waiting")

    def __init__(self, name: str, due: DueWaiters) -> None:
        """``name`` is that of what is waited for; ``due`` tells whoever waited."""
        self._name = name
        self._due = due
        self._waiting: list[tuple[int, int, Waiter]] = []
        """By offset, then in the order in which they came, which is nearly always the same."""
        self._places: dict[Waiter, tuple[int, int]] = {}
        self._numbers = count()

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
        if not end:
            return
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
        self._due.tell_at_once(self._name, waiter, error)

    def _tell(self, waiting: Iterable[tuple[int, int, Waiter]], error: KafkaError | None) -> None:
        waiters = [waiter for _, _, waiter in waiting]
        for waiter in waiters:
            self._places.pop(waiter, None)
        self._due.tell(self._name, waiters, error)
