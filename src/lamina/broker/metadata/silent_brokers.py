"""Brokers whose connections to the controller have ended: whether their processes are gone, before their sessions tell.

Owns when to look. A live broker keeps a connection to the controller, also while it is busy; a process that dies takes
its port with it, and its machine refuses whoever connects. One that refuses again and again is dead; one that is
paused, cut off or without power refuses nobody, and keeps its registration as long as its session. Those that die
almost together are removed together, so that none of them is elected in between. Must not know what follows from a
death.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
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
_TOGETHER_SECONDS = _SILENT_SECONDS + (_LOOKS - 1) * _BETWEEN_SECONDS
"""How long a dead broker stays for others that are looked at: who fell silent before it was found dead is in time."""


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
        remove: Callable[[Sequence[Broker]], Awaitable[object]],
    ) -> None:
        """``expected`` finds a broker that still ought to ask; ``remove`` is called for those that are dead."""
        self._is_refused = is_refused
        self._expected = expected
        self._remove = remove
        self._callers: dict[int, _Callers] = {}
        """By broker the connections of its last registration that has asked."""
        self._watched: set[int] = set()
        self._undecided: set[int] = set()
        """Those of them that fell silent just now, or are being looked at."""
        self._dead: dict[int, Broker] = {}
        """Found dead, and not removed yet."""
        self._decided = asyncio.Event()
        """Set when there is one undecided less; then there is another event."""
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
            self._undecided.add(broker_id)
            self._watches.begin(self._watch(broker_id))

    @property
    def suspects(self) -> frozenset[int]:
        """Brokers that may be dead."""
        return frozenset(broker_id for broker_id in self._watched if self._silent(broker_id) is not None)

    async def _watch(self, broker_id: int) -> None:
        await asyncio.sleep(_SILENT_SECONDS)
        while (broker := self._silent(broker_id)) is not None:
            self._undecided.add(broker_id)
            is_gone = await is_dead(broker, self._is_refused) and self._silent(broker_id) == broker
            self._decide(broker_id)
            if is_gone:
                await self._remove_with_others(broker)
            await asyncio.sleep(_AGAIN_SECONDS)
        self._decide(broker_id)
        self._watched.discard(broker_id)

    def _decide(self, broker_id: int) -> None:
        self._undecided.discard(broker_id)
        self._decided.set()
        self._decided = asyncio.Event()

    async def _remove_with_others(self, broker: Broker) -> None:
        """As soon as it is known of all whether they are dead, but not much later."""
        self._dead[broker.id] = broker
        with suppress(TimeoutError):
            async with asyncio.timeout(_TOGETHER_SECONDS):
                while self._undecided and broker.id in self._dead:
                    await self._decided.wait()
        dead = [one for one in self._dead.values() if self._silent(one.id) == one]
        self._dead.clear()
        if dead:
            await self._remove(dead)

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
