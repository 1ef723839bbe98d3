"""Producer ids, taken from the cluster store in blocks.

Owns that no id is ever given twice: a block is in the store before anybody sees it, so a broker that dies with
a block in hand wastes ids and repeats none. On one node the store keeps the next id; in ZooKeeper it keeps the block
that was given out last, as Kafka does. Must not know who uses an id.
"""

from typing import Protocol

from lamina.store import values
from lamina.store.interface import Create, Set, Store, StoreConflict, StoreError

BLOCK_SIZE = 1000
END = 2**63
"""A producer id is a signed number of 64 bits."""


class Record(Protocol):
    """Where a store keeps which ids are taken, and how."""

    path: str

    def dump(self, taken: range) -> bytes:
        """For a block that is given out now: all ids below its end are taken."""
        ...

    def next_id(self, value: bytes) -> int:
        """The lowest id that is not taken; raises ``ValueError`` and the like."""
        ...


class NextId:
    """The next id, as a number."""

    path = "/producer_ids"

    def dump(self, taken: range) -> bytes:
        return values.dump(taken.stop)

    def next_id(self, value: bytes) -> int:
        return values.load_number(value)


class LastBlock:
    """The last block and who has it, as Kafka writes it: the numbers are text, and both ends belong to the block."""

    path = "/latest_producer_id_block"

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id

    def dump(self, taken: range) -> bytes:
        return values.dump(
            {
                "version": 1,
                "broker": self._broker_id,
                "block_start": str(taken.start),
                "block_end": str(taken.stop - 1),
            }
        )

    def next_id(self, value: bytes) -> int:
        return int(values.load(value)["block_end"]) + 1


class ProducerIds:
    def __init__(self, store: Store, record: Record | None = None) -> None:
        """``record`` is a :class:`NextId` unless it is given."""
        self._store = store
        self._record = NextId() if record is None else record

    def next_block(self, at_least: int = 0) -> range:
        """Ids that were never given out, none below ``at_least``: one more than the highest that any log speaks of.

        The store may know less than the logs, when directories were adopted or the store was restored.
        """
        path = self._record.path
        while True:
            found = self._store.get(path)
            start = max(at_least, 0 if found is None else self._next_id(found.value))
            block = range(start, start + BLOCK_SIZE)
            if block.stop > END:
                raise StoreError(f"there are no producer ids left above {start - 1}")
            taken = self._record.dump(block)
            try:
                self._store.transact([Create(path, taken) if found is None else Set(path, taken, found.version)])
            except StoreConflict:
                # Another broker took a block meanwhile: look again.
                continue
            return block

    def next_id(self) -> int:
        """The lowest id that is in no block yet."""
        found = self._store.get(self._record.path)
        return 0 if found is None else self._next_id(found.value)

    def skip_to(self, next_id: int) -> None:
        """Never give an id below ``next_id``."""
        path, skipped = self._record.path, self._record.dump(range(next_id))
        found = self._store.get(path)
        if found is None:
            self._store.transact([Create(path, skipped)])
        elif self._next_id(found.value) < next_id:
            self._store.transact([Set(path, skipped, found.version)])

    def _next_id(self, value: bytes) -> int:
        try:
            number = self._record.next_id(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            number = -1
        if number < 0:
            shown = f"{self._record.path} in the metadata store"
            raise StoreError(f"{shown} is not a number that ids can follow: {value[:100]!r}")
        return number
