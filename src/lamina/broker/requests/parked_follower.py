"""A follower's fetch that found nothing new, and waits for its feed without a task.

Owns where it is noted that it waits, and that it is left everywhere when it goes on. Must not know how it is answered.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context

from lamina.broker.counters import Counters
from lamina.broker.requests.follower_waits import FollowerWaits
from lamina.broker.requests.replica_feed import ReplicaFeed
from lamina.broker.requests.request import Request
from lamina.broker.waits import Waits
from lamina.clocks import Clocks


class ParkedFollower:
    __slots__ = (
        "_began_ns",
        "_clocks",
        "_counters",
        "_feed",
        "_go_on",
        "_has_left",
        "_is_woken",
        "_loop",
        "_missing_bytes",
        "_request",
        "_timer",
        "_waits",
    )

    def __init__(
        self,
        request: Request,
        feed: ReplicaFeed,
        missing_bytes: int,
        deadline: float,
        follower_waits: FollowerWaits,
        counters: Counters,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
        go_on: Callable[[], None],
    ) -> None:
        """``go_on`` is called in a turn of the loop after enough has come, the time is over or the client is gone."""
        self._request = request
        self._feed = feed
        self._missing_bytes = missing_bytes
        self._waits = follower_waits
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self._go_on = go_on
        self._is_woken = self._has_left = False
        self._began_ns = clocks.monotonic_ns()
        # The loop drops a timer that was cancelled late; until then it is not to hold on to the request's own context.
        self._timer = loop.call_at(deadline, self.stop_waiting, context=Context())
        counters.parked_fetches += 1
        follower_waits.begin(feed.replica_id, self)
        feed.park(self)
        request.park(self.stop_waiting)

    def changed(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.stop_waiting()

    def look_again(self) -> None:
        """Of what else has changed, followers hear with the records that come next (R15)."""

    def stop_waiting(self) -> None:
        """What is appended in this turn of the loop goes into one answer; it is no part of the request that came."""
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._wake, context=Context())

    def _wake(self) -> None:
        if not self._has_left:
            self.leave()
            self._go_on()

    def leave(self) -> None:
        """It waits no more, or nobody wants its answer."""
        self._has_left = True
        self._timer.cancel()
        self._feed.unpark()
        self._waits.end(self._feed.replica_id, self)
        self._counters.parked_fetches -= 1
        request = self._request
        request.unpark()
        if request.waits is None:
            request.waits = Waits()
        request.waits.parked_ns += self._clocks.monotonic_ns() - self._began_ns
