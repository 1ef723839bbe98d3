"""The batches of one partition on their way to its leader.

Owns their order. Up to `WINDOW` are in flight at a time, which is how many a broker remembers of a producer (KIP-98).
When one fails in a way that passes by itself, nothing more is sent until all in flight have come back; then those that
failed go again, in the order of their sequences. A broker that had appended one of them recognises it by its sequence.
One of several records that is too large goes again in parts.
Time is an argument, in seconds of a monotonic clock. Pure. Must not know brokers.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from lamina.errors import ErrorCode, KafkaError
from lamina.peer.retries import is_retriable
from lamina.producing.splitting import halves
from lamina.records.batch import Buffer

WINDOW: Final = 5

_ALREADY_THERE: Final = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
_PREDECESSOR_MISSING: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
_TOO_LARGE: Final = ErrorCode.MESSAGE_TOO_LARGE
_TRIED_AGAIN: Final = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CORRUPT_MESSAGE})
"""A leader says the first while the transaction before this one is being ended."""


@dataclass(slots=True, eq=False)
class Outgoing:
    """One record batch."""

    data: Buffer
    records: int
    due: float
    """When to give up."""
    last_error: KafkaError | None = None
    """Why its last attempt failed."""


@dataclass(slots=True)
class Outbox:
    _waiting: deque[Outgoing] = field(default_factory=deque)
    _in_flight: deque[Outgoing] = field(default_factory=deque)
    """In the order of sequences; those that have failed stay until all have come back."""
    _pending: int = 0
    """How many of them have not come back."""
    _attempt: int = 0
    """Failures in a row."""
    _window: int = 1
    """A log that knows nothing of a producer takes any sequence for its first: until it has one, none may overtake."""

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._in_flight

    @property
    def attempt(self) -> int:
        return self._attempt

    @property
    def is_broken(self) -> bool:
        """Whether one in flight has failed: nothing is sent until all have come back."""
        return any(one.last_error is not None for one in self._in_flight)

    def add(self, batch: Outgoing) -> None:
        self._waiting.append(batch)

    def peek(self) -> Outgoing | None:
        """What may be sent now."""
        if not self._waiting or len(self._in_flight) >= self._window or self.is_broken:
            return None
        return self._waiting[0]

    def split(self, limit_bytes: int) -> int:
        """Put parts in place of what is to be sent next, while it is that large. How many bytes they take beyond it.

        What may be there already goes again as it was: by its sequences it is known, and its parts would not be.
        """
        grown = 0
        while (batch := self.peek()) is not None and batch.records > 1 and len(batch.data) >= limit_bytes:
            if batch.last_error is not None and batch.last_error.code != _TOO_LARGE:
                break
            self._waiting.popleft()
            first, second = halves(batch.data)
            middle = batch.records // 2
            self._waiting.appendleft(Outgoing(second, batch.records - middle, batch.due))
            self._waiting.appendleft(Outgoing(first, middle, batch.due))
            grown += len(first) + len(second) - len(batch.data)
        return grown

    def take(self) -> Outgoing:
        """What `peek` gave, as sent."""
        batch = self._waiting.popleft()
        batch.last_error = None
        self._in_flight.append(batch)
        self._pending += 1
        return batch

    def acknowledged(self, batch: Outgoing) -> None:
        self._window = WINDOW
        self._in_flight.remove(batch)
        self._came_back()
        if not self._in_flight:
            self._attempt = 0

    def failed(self, batch: Outgoing, error: KafkaError, now: float) -> bool:
        """Whether it was there already. Raises the error where trying again is in vain, or its time is over."""
        if error.code == _ALREADY_THERE:
            self.acknowledged(batch)
            return True
        is_behind = error.code == _PREDECESSOR_MISSING and self._in_flight[0] is not batch
        is_several = error.code == _TOO_LARGE and batch.records > 1
        if now >= batch.due or not (is_behind or is_several or is_retriable(error) or error.code in _TRIED_AGAIN):
            raise error
        batch.last_error = error
        self._came_back()
        return False

    def _came_back(self) -> None:
        self._pending -= 1
        if self._pending == 0 and self._in_flight:
            self._waiting.extendleft(reversed(self._in_flight))
            self._in_flight.clear()
            self._attempt += 1
