"""How long answers wait for the commit of what they tell.

Owns when each of them has waited long enough, with one timer for all; then nothing is left of it that waits for the
commit. Must not know what is answered, nor what a commit is.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context

from lamina.coordinators.decision import Reply

Replies = list[Reply]
Forget = Callable[[], None]


class CommitDeadlines:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], int],
        timeout_ms: int,
        overdue: Callable[[Replies], None],
    ) -> None:
        """``overdue`` is told of each list of replies that was not committed within ``timeout_ms``."""
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._timeout_ms = timeout_ms
        self._overdue = overdue
        self._waiting: dict[int, tuple[int, Replies, Forget]] = {}
        """By the identity of the list, in the order in which they are due: all wait equally long."""
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()
        """What the timer does is no part of the request that happened to set it."""

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, replies: Replies, forget: Forget) -> None:
        """``forget`` is called when nobody waits for their commit any more."""
        self._waiting[id(replies)] = (self._monotonic_ms() + self._timeout_ms, replies, forget)
        if self._timer is None:
            self._arm(self._timeout_ms)

    def end(self, replies: Replies) -> None:
        """They are committed, or never will be."""
        self._waiting.pop(id(replies), None)

    def cancel_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for _, _, forget in waiting.values():
            forget()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_ms: int) -> None:
        self._timer = self._loop.call_later(delay_ms / 1000, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        now_ms = self._monotonic_ms()
        while self._waiting:
            key, (due_ms, replies, forget) = next(iter(self._waiting.items()))
            if due_ms > now_ms:
                self._arm(due_ms - now_ms)
                return
            del self._waiting[key]
            forget()
            self._overdue(replies)
