"""The readers that wait for one partition to change.

Owns who they are, in the order in which they came: whoever waits longest is told first. One may come or go while others
are told. Must not know what has changed, nor how any of them reads.
"""

from lamina.broker.partitions.parked_fetch import Parked


class ParkedReaders:
    __slots__ = ("_parked",)

    def __init__(self) -> None:
        self._parked: dict[Parked, None] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def add(self, parked: Parked) -> None:
        self._parked[parked] = None

    def remove(self, parked: Parked) -> None:
        """Also one that is not there."""
        self._parked.pop(parked, None)

    def changed(self, size_bytes: int) -> None:
        """More bytes may be read now."""
        for parked in tuple(self._parked):
            parked.changed(size_bytes)

    def look_again(self) -> None:
        """There may be more for them, and how much is not counted."""
        for parked in tuple(self._parked):
            parked.look_again()

    def stop_waiting(self) -> None:
        """What they waited for will not come."""
        for parked in tuple(self._parked):
            parked.stop_waiting()
