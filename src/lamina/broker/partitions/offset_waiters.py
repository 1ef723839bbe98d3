"""Who waits until something reaches an offset: a high watermark, a low watermark.

Owns the list of them. Each is told once. Must not know what the offsets mean.
"""

from collections.abc import Callable

from lamina.errors import KafkaError

Waiter = Callable[[KafkaError | None], None]
"""Told once, with the reason where nothing can be promised."""


class OffsetWaiters:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Waiter]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, offset: int, waiter: Waiter) -> None:
        self._waiting.append((offset, waiter))

    def reached(self, offset: int, error: KafkaError | None) -> None:
        """Tell those who waited for ``offset`` or one below it."""
        told = [waiter for wanted, waiter in self._waiting if wanted <= offset]
        self._waiting = [one for one in self._waiting if one[0] > offset]
        for waiter in told:
            waiter(error)

    def forget(self, waiter: Waiter) -> None:
        """Not to be told any more: it waited long enough."""
        self._waiting = [one for one in self._waiting if one[1] is not waiter]

    def fail(self, error: KafkaError) -> None:
        """Tell all that what they wait for will not come."""
        waiting, self._waiting = self._waiting, []
        for _, waiter in waiting:
            waiter(error)
