"""Brokers that ask the controller no more: whether their processes are gone, before their sessions tell.

Owns when to look. A live broker always has a question open; a process that dies takes its port with it, and its machine
refuses whoever connects. One that refuses again and again is dead; one that is paused, cut off or without power refuses
nobody, and keeps its registration as long as its session. Must not know what follows from a death.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from lamina.broker.tasks import Tasks
from lamina.image.image import Broker

IsRefused = Callable[[Broker], Awaitable[bool]]
"""Whether a broker's machine is there and nothing listens at the broker's address."""

_LOOKS = 3
_BETWEEN_SECONDS = 0.05
_SILENT_SECONDS = 0.1
"""A broker whose question was answered asks the next one sooner."""
_AGAIN_SECONDS = 0.5


async def is_dead(broker: Broker, is_refused: IsRefused) -> bool:
    """Refused once, it may be about to listen again."""
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_BETWEEN_SECONDS)
        if not await is_refused(broker):
            return False
    return True


class SilentBrokers:
    def __init__(
        self,
        is_refused: IsRefused,
        is_expected: Callable[[Broker], bool],
        remove: Callable[[Broker], Awaitable[object]],
    ) -> None:
        """``is_expected`` tells whether a broker still ought to ask; ``remove`` is called for one that is dead."""
        self._is_refused = is_refused
        self._is_expected = is_expected
        self._remove = remove
        self._open: Counter[int] = Counter()
        """Questions of each broker that wait for their answers."""
        self._watches = Tasks()
        self._is_closed = False

    @contextmanager
    def asking(self, broker: Broker) -> Iterator[None]:
        """While one question of a broker is answered."""
        self._open[broker.id] += 1
        try:
            yield
        except GeneratorExit:
            # The loop has ended with the question open: nobody looks any more.
            self._is_closed = True
            raise
        finally:
            self._open[broker.id] -= 1
            if not self._open[broker.id] and not self._is_closed:
                self._watches.begin(self._watch(broker))

    async def _watch(self, broker: Broker) -> None:
        await asyncio.sleep(_SILENT_SECONDS)
        while self._is_silent(broker):
            if await is_dead(broker, self._is_refused) and self._is_silent(broker):
                await self._remove(broker)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _is_silent(self, broker: Broker) -> bool:
        return not self._open[broker.id] and self._is_expected(broker)

    def close(self) -> None:
        self._is_closed = True
        self._watches.cancel()
