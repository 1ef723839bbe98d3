"""Readers that wait for a partition are told in the order in which they came, and may come and go meanwhile."""

from lamina.broker.partitions.parked_readers import ParkedReaders


class Reader:
    def __init__(self, name: str, told: list[str], readers: ParkedReaders, *, leaves: bool = False) -> None:
        self._name, self._told, self._readers, self._leaves = name, told, readers, leaves

    def _tell(self, what: str) -> None:
        self._told.append(f"{self._name}: {what}")
        if self._leaves:
            self._readers.remove(self)

    def changed(self, size_bytes: int) -> None:
        self._tell(f"{size_bytes} bytes")

    def look_again(self) -> None:
        self._tell("look")

    def stop_waiting(self) -> None:
        self._tell("stop")


def test_whoever_came_first_is_told_first_and_one_that_leaves_takes_nothing_from_the_others() -> None:
    told: list[str] = []
    readers = ParkedReaders()
    readers.add(Reader("a", told, readers, leaves=True))
    readers.add(Reader("b", told, readers))
    readers.changed(7)
    readers.look_again()
    readers.stop_waiting()
    assert told == ["a: 7 bytes", "b: 7 bytes", "b: look", "b: stop"]
    assert len(readers) == 1


def test_one_that_is_not_there_may_be_removed() -> None:
    readers = ParkedReaders()
    readers.remove(Reader("a", [], readers))
    assert not readers
