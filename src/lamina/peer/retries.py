"""Which errors pass by themselves, and how long to wait before the next attempt.

Owns Kafka's division of errors into those that a client retries and those that it reports, and the back-off between
attempts (KIP-580). Pure: randomness is handed in. Must not know clusters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lamina.errors import ErrorCode, KafkaError

LEADER_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""What is known of the partition is wrong, or may be: it is asked for again."""

COORDINATOR_ERRORS: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
CONTROLLER_ERRORS: Final = frozenset({ErrorCode.NOT_CONTROLLER})

RETRIABLE: Final = (
    LEADER_ERRORS
    | COORDINATOR_ERRORS
    | CONTROLLER_ERRORS
    | {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


def is_retriable(error: KafkaError) -> bool:
    return error.code in RETRIABLE


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from attempt to attempt up to a limit; a fifth more or less, so that clients do not come in step."""

    first_ms: int
    max_ms: int
    random: Callable[[], float]
    """Evenly from [0, 1)."""

    def wait_ms(self, attempt: int) -> float:
        """Before the next attempt, when `attempt` of them (0, 1, …) failed before the last one."""
        # The exponent is bounded: a client may try for days.
        exact_ms = min(self.first_ms << min(attempt, 30), self.max_ms)
        return exact_ms * (0.8 + 0.4 * self.random())
