"""Registering this broker, with patience for a session that is about to end.

Owns how long a broker waits for an id that another one holds: a broker whose disk was wiped, or replaced, finds the
registration of its former self, which goes with its session. The wait is on the loop, not on the store's thread. Must
not know what a registration says.
"""

import asyncio

from lamina.broker.threads import Threads
from lamina.store.interface import StoreConflict
from lamina.store.membership import IdTaken, Membership
from lamina.store.registration import Registration

_LOOK_SECONDS = 0.1


async def register(membership: Membership, registration: Registration, thread: Threads, timeout_ms: int) -> int:
    """Returns the broker's epoch. Raises `IdTaken` when the session of another broker outlasts ``timeout_ms``.

    The servers look for ended sessions once in a tick, which is half of the shortest session, so the wait is half as
    long again.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms * 1.5 / 1000
    while True:
        try:
            return await thread.run(lambda: membership.try_register(registration))
        except (IdTaken, StoreConflict):
            # A registration that goes at this moment is in the way no more.
            if loop.time() >= deadline:
                raise
        await asyncio.sleep(_LOOK_SECONDS)
