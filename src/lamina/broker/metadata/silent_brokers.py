"""Brokers whose connections to the controller have ended: whether their processes are gone, before their sessions tell.

Owns when to look. A live broker keeps a connection to the controller, also while it is busy; a process that dies takes
its port with it, and its machine refuses whoever connects. One that refuses again and again is dead; one that is
paused, cut off or without power refuses nobody, and keeps its registration as long as its session. Must not know what
follows from a death.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from lamina.broker.tasks import Tasks
from lamina.image.image import Broker

IsRefused = Callable[[Broker], Awaitable[bool]]
"""Whether a broker's machine is there and nothing listens at the broker's address."""

_LOOKS = 3
_BETWEEN_SECONDS = 0.05
_SILENT_SECONDS = 0.1
"""A broker that lives connects again sooner."""
_AGAIN_SECONDS = 0.5


class Caller(Protocol):
    """The connection over which a broker asks."""

    @property
    def id(self) -> int: ...
    def when_gone(self, told: Callable[[], None]) -> None:
        """Call once when the other side has hung up, or at once if it has."""


async def is_dead(broker: Broker, is_refused: IsRefused) -> bool:
    """Refused once, it may be about to listen again."""
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_BETWEEN_SECONDS)
        if not await is_refused(broker):
            return False
    return True


class _Callers(NamedTuple):
    """The connections over which a broker asks in one registration."""

    broker_epoch: int
    open: set[int]


class SilentBrokers:
    def __init__(
        self,
        is_refused: IsRefused,
        expected: Callable[[int], Broker | None],
        remove: Callable[[Broker], Awaitable[object]],
    ) -> None:
        """``expected`` finds a broker that still ought to ask; ``remove`` is called for one that is dead."""
        self._is_refused = is_refused
        self._expected = expected
        self._remove = remove
        self._callers: dict[int, _Callers] = {}
        """By broker the connections of its last registration that has asked."""
        self._watched: set[int] = set()
        self._watches = Tasks()
        self._is_closed = False

    def heard(self, broker: Broker, caller: Caller) -> None:
        callers = self._callers.get(broker.id)
        if callers is None or callers.broker_epoch != broker.epoch:
            callers = self._callers[broker.id] = _Callers(broker.epoch, set())
        if caller.id not in callers.open and not self._is_closed:
            callers.open.add(caller.id)
            caller.when_gone(partial(self._gone, broker.id, callers, caller.id))

    def _gone(self, broker_id: int, callers: "_Callers", caller_id: int) -> None:
        callers.open.discard(caller_id)
        self.watch(broker_id)

    def watch(self, broker_id: int) -> None:
        """Look at a broker, now and then, as long as it ought to ask and has no connection for it."""
        if not self._is_calling(broker_id) and broker_id not in self._watched and not self._is_closed:
            self._watched.add(broker_id)
            self._watches.begin(self._watch(broker_id))

    async def _watch(self, broker_id: int) -> None:
        await asyncio.sleep(_SILENT_SECONDS)
        while (broker := self._silent(broker_id)) is not None:
            if await is_dead(broker, self._is_refused) and self._silent(broker_id) == broker:
                await self._remove(broker)
            await asyncio.sleep(_AGAIN_SECONDS)
        self._watched.discard(broker_id)

    def _silent(self, broker_id: int) -> Broker | None:
        """A broker that ought to ask and has no connection for it."""
        return None if self._is_calling(broker_id) else self._expected(broker_id)

    def _is_calling(self, broker_id: int) -> bool:
        """Connections of a former registration say nothing: a machine that was without power leaves them open."""
        callers, broker = self._callers.get(broker_id), self._expected(broker_id)
        return bool(callers is not None and callers.open and (broker is None or broker.epoch == callers.broker_epoch))

    def close(self) -> None:
        self._is_closed = True
        self._watches.cancel()
