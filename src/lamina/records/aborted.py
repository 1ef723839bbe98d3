"""Which batches belong to aborted transactions (facts 50-52), told batch by batch in log order.

Must not know where the aborted transactions were learned, nor what is done with such a batch.
"""

from collections import deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Aborted(Protocol):
    @property
    def producer_id(self) -> int: ...

    @property
    def first_offset(self) -> int: ...


Entry = TypeVar("Entry", bound=Aborted)


class AbortedTransactions(Generic[Entry]):
    def __init__(self, entries: Iterable[Entry]) -> None:
        self._coming = deque(sorted(entries, key=lambda entry: entry.first_offset))
        self._ongoing: dict[int, Entry] = {}

    @property
    def is_over(self) -> bool:
        """Whether nothing that follows can belong to one."""
        return not self._coming and not self._ongoing

    def advance(self, last_offset: int) -> None:
        """The batch that ends there is next."""
        while self._coming and self._coming[0].first_offset <= last_offset:
            entry = self._coming.popleft()
            self._ongoing.setdefault(entry.producer_id, entry)

    def ongoing(self, producer_id: int) -> Entry | None:
        """The aborted transaction that this producer's transactional batch belongs to."""
        return self._ongoing.get(producer_id)

    def end(self, producer_id: int) -> Entry | None:
        """The marker of an abort: the transaction that ends with it, if it is one of these."""
        return self._ongoing.pop(producer_id, None)
