"""Producer ids, taken from the cluster store in blocks.

Owns that no id is ever given twice: a block is in the store before anybody sees it, so a broker that dies with
a block in hand wastes ids and repeats none. Must not know who uses an id.
"""

from lamina.store import values
from lamina.store.interface import Create, Set, Store, StoreConflict, StoreError

PATH = "/producer_ids"
BLOCK_SIZE = 1000
END = 2**63
"""A producer id is a signed number of 64 bits."""


class ProducerIds:
    def __init__(self, store: Store) -> None:
        self._store = store

    def next_block(self, at_least: int = 0) -> range:
        """Ids that were never given out, none below ``at_least``: one more than the highest that any log speaks of.

        The store may know less than the logs, when directories were adopted or the store was restored.
        """
        while True:
            found = self._store.get(PATH)
            start = max(at_least, 0 if found is None else _next_id(found.value))
            block = range(start, start + BLOCK_SIZE)
            if block.stop > END:
                raise StoreError(f"there are no producer ids left above {start - 1}")
            taken = values.dump(block.stop)
            try:
                self._store.transact([Create(PATH, taken) if found is None else Set(PATH, taken, found.version)])
            except StoreConflict:
                # Another broker took a block meanwhile: look again.
                continue
            return block

    def next_id(self) -> int:
        """The lowest id that is in no block yet."""
        found = self._store.get(PATH)
        return 0 if found is None else _next_id(found.value)

    def skip_to(self, next_id: int) -> None:
        """Never give an id below ``next_id``."""
        found = self._store.get(PATH)
        if found is None:
            self._store.transact([Create(PATH, values.dump(next_id))])
        elif _next_id(found.value) < next_id:
            self._store.transact([Set(PATH, values.dump(next_id), found.version)])


def _next_id(value: bytes) -> int:
    try:
        number = values.load_number(value)
    except ValueError:
        number = -1
    if number < 0:
        raise StoreError(f"{PATH} in the metadata store is not a number that ids can follow: {value[:100]!r}")
    return number
