"""Registering this broker, with patience for a session that is about to end.

Owns how long a broker waits for an id that another one holds: a broker whose disk was wiped, or replaced, finds the
registration of its former self, which goes with its session. The wait is on the loop, not on the store's thread. Must
not know what a registration says.
"""

import asyncio
import logging

from lamina.broker.threads import Threads
from lamina.store.interface import StoreConflict
from lamina.store.membership import IdTaken, Membership
from lamina.store.registration import Registration
from lamina.store.session import GHOST_TIMEOUTS

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1


async def register(membership: Membership, registration: Registration, thread: Threads, timeout_ms: int) -> int:
    """Returns the broker's epoch. Raises `IdTaken` when another broker outlasts sessions of ``timeout_ms``."""
    loop = asyncio.get_running_loop()
    patience_seconds = timeout_ms * GHOST_TIMEOUTS / 1000
    deadline = loop.time() + patience_seconds
    is_told = False
    while True:
        try:
            return await thread.run(lambda: membership.try_register(registration))
        except (IdTaken, StoreConflict) as error:
            # A registration that goes at this moment is in the way no more.
            if loop.time() >= deadline:
                raise
            if isinstance(error, IdTaken) and not is_told:
                logger.warning(
                    "waiting up to %.0f s for the id of this broker: it may be left over from its own last run",
                    patience_seconds,
                )
                is_told = True
        await asyncio.sleep(_LOOK_SECONDS)
