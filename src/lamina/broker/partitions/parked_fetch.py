"""A fetch that found too little and waits for more.

Must not know how the fetch reads; it is told of growth and wakes its owner.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import Protocol

from lamina.broker.turns import Turns


class Parked(Protocol):
    """Whoever waits for a partition to change."""

    def changed(self, size_bytes: int) -> None:
        """More bytes may be read now."""

    def look_again(self) -> None:
        """Readers of committed records may see more, and how much is not counted: a transaction has ended."""

    def stop_waiting(self) -> None:
        """What was waited for will not come: the role or the partition is gone, or its broker stops."""


class Growing(Protocol):
    """What is waited for: a partition."""

    grown_bytes: int
    appended_bytes: int

    @property
    def may_grow(self) -> bool: ...

    def park(self, parked: Parked, *, is_replica: bool = False) -> None: ...

    def unpark(self, parked: Parked) -> None: ...


class ParkedFetch:
    __slots__ = ("_future", "_is_committed", "_is_replica", "_loop", "_missing_bytes")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        missing_bytes: int,
        *,
        is_committed: bool = False,
        is_replica: bool = False,
    ) -> None:
        """``is_committed`` where only committed transactions are read: then the end of one is worth a look.

        ``is_replica`` where a follower waits: it reads what is appended, others what is below the high watermark.
        """
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._is_committed = is_committed
        self._is_replica = is_replica
        self._future: asyncio.Future[bool] = loop.create_future()

    async def wait(self, partitions: Sequence[tuple[Growing, int]], deadline: float, turns: Turns | None) -> bool:
        """Return when enough has come, when the loop's time is over, or when waiting has become pointless.

        Each partition comes with its ``readable_bytes`` from when it was read: what came since then counts, though
        nobody was parked. Says whether more may come. ``turns`` if the partitions are many.
        """
        # The loop drops a timer that was cancelled late; until then it is not to hold on to the request's own context.
        timer = self._loop.call_at(deadline, self.stop_waiting, context=Context())
        try:
            for partition, seen_bytes in partitions:
                partition.park(self, is_replica=self._is_replica)
                came_bytes = readable_bytes(partition, is_replica=self._is_replica) - seen_bytes
                if not partition.may_grow:
                    self.stop_waiting()
                elif came_bytes:
                    self.changed(came_bytes)
                    # One of the batches may have ended a transaction.
                    self.look_again()
                if turns is not None:
                    await turns.step()
            return await self._future
        finally:
            timer.cancel()
            for partition, _ in partitions:
                partition.unpark(self)

    def changed(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._wake()

    def look_again(self) -> None:
        if self._is_committed:
            self._wake()

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    def stop_waiting(self) -> None:
        if not self._future.done():
            self._future.set_result(False)


def readable_bytes(partition: Growing, *, is_replica: bool) -> int:
    """How many bytes have come that such a reader may read, since the partition was opened."""
    return partition.appended_bytes if is_replica else partition.grown_bytes
