"""What the transaction coordinator goes by: the broker's settings and the level of a feature.

Must not know where they come from.
"""

from dataclasses import dataclass

CLASSIC = 0
"""What a client speaks that adds partitions itself and keeps its epoch from one transaction to the next."""
BUMPING = 2
"""Transaction version 2 (KIP-890): every end raises the epoch, and partitions are added by the brokers."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Defaults are Kafka's."""

    max_timeout_ms: int = 15 * 60 * 1000
    abort_timed_out_interval_ms: int = 10_000
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    remove_expired_interval_ms: int = 60 * 60 * 1000
    transaction_version: int = BUMPING
    """The finalized level of ``transaction.version``."""
