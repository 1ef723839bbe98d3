"""Telling those who waited, once what they waited for has come or never will: so many in one turn, in order.

Owns the queue of all who are due, of every partition of a broker: one Fetch of a follower, or one fsync, lets many go
on. Whoever is left over is told in later turns. One that fails takes nothing from the others. Must not know what was
waited for, nor what a turn is: it is given a way to go on in the next one.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

E = TypeVar("E")

logger = logging.getLogger(__name__)

AT_A_TIME = 25
"""So many are told in one turn of the loop: one may send a response, which takes 40 microseconds."""


class DueWaiters:
    __slots__ = ("_due", "_has_next_turn", "_is_telling", "_left", "_next_turn", "_on_failure")

    def __init__(self, next_turn: Callable[[Callable[[], None]], object], on_failure: Callable[[], None]) -> None:
        """``next_turn`` calls what it is given once this turn is over.

        ``on_failure`` is told that a waiter raised something: that is our fault, and nobody else's to handle.
        """
        self._next_turn = next_turn
        self._on_failure = on_failure
        self._due: deque[tuple[str, Callable[[Any], object], Any]] = deque()
        self._is_telling = False
        self._left = AT_A_TIME
        """How many more may be told in this turn. Where few were told it is less than it could be: most turns tell one,
        and need no next turn to begin anew."""
        self._has_next_turn = False

    def tell(self, name: str, waiters: Iterable[Callable[[E], object]], error: E) -> None:
        """Tell those who waited for ``name``, behind those who are due already."""
        for waiter in waiters:
            self._due.append((name, waiter, error))
        if not self._is_telling:
            self._tell_due()

    def tell_at_once(self, name: str, waiter: Callable[[E], object], error: E) -> None:
        """Tell one that need not wait, which is its caller's own work: at once, unless others are to be told before."""
        if self._due or self._is_telling:
            self._due.append((name, waiter, error))
        else:
            waiter(error)

    def _tell_due(self) -> None:
        due, self._is_telling = self._due, True
        try:
            while due and self._left:
                self._left -= 1
                name, waiter, error = due.popleft()
                try:
                    waiter(error)
                except Exception as failure:
                    logger.error("one who waited for %s failed", name, exc_info=failure)
                    self._on_failure()
        finally:
            self._is_telling = False
            if not self._has_next_turn and (due or self._left <= AT_A_TIME // 2):
                self._has_next_turn = True
                self._next_turn(self._go_on)

    def _go_on(self) -> None:
        self._has_next_turn, self._left = False, AT_A_TIME
        self._tell_due()
