"""In which transaction one attempt at a task writes.

Owns that no two attempts ever write in the same one, also where both found the same transactional id free. Must not
know what is written.
"""

from collections.abc import Callable
from typing import Protocol

from lamina.peer.transacting import Producer
from lamina.producing.decisions import (
    BatchName,
    OpenTransaction,
    QueryState,
    Slot,
    UseNew,
    UsePooled,
    WriteNothing,
    new_attempt_id,
    plan_attempt,
)


class AttemptLedger(Protocol):
    """What brokers keep of one query, as far as its tasks ask."""

    timeout_ms: int
    now_ms: Callable[[], int]
    """Wall time."""

    async def read(self) -> QueryState | None: ...

    async def claim(self, transaction: OpenTransaction, token: str) -> bool:
        """Whether whoever drew this token may write as this producer: told to one attempt alone."""

    async def renew(self, transactional_id: str) -> Producer:
        """An id in a new epoch."""


async def open_attempt(
    ledger: AttemptLedger, prefix: str, name: BatchName, slot: Slot, token: str
) -> OpenTransaction | None:
    """A transaction that is this attempt's alone; ``None`` where the batch is decided. `token` is drawn for it."""
    match plan_attempt(await ledger.read(), name, slot, ledger.timeout_ms, ledger.now_ms()):
        case WriteNothing():
            return None
        case UsePooled(pooled):
            if await ledger.claim(pooled, token):
                return pooled
        case UseNew():
            pass
    new = new_attempt_id(prefix, name, slot, token)
    return OpenTransaction(new, await ledger.renew(new))
