"""Who waits for an offset, and how many bytes are committed at once."""

from lamina.broker.partitions.offset_waiters import OffsetWaiters
from lamina.broker.partitions.uncommitted import UncommittedBytes
from lamina.errors import KafkaError, NotLeaderOrFollower
from tests.log.story import told_inline


def test_each_is_told_once_when_its_offset_is_reached() -> None:
    waiters, told = OffsetWaiters("t-0", told_inline()), list[tuple[int, KafkaError | None]]()
    for offset in (5, 3, 8):
        waiters.add(offset, lambda error, offset=offset: told.append((offset, error)))  # type: ignore[misc]
    waiters.reached(4, None)
    waiters.reached(5, None)
    waiters.reached(5, None)
    assert (told, bool(waiters)) == ([(3, None), (5, None)], True)
    failure = NotLeaderOrFollower("gone")
    waiters.fail(failure)
    waiters.fail(failure)
    assert (told[2:], bool(waiters)) == ([(8, failure)], False)


def test_one_that_waited_long_enough_is_forgotten() -> None:
    """Else those of a long outage would pile up."""
    waiters, told = OffsetWaiters("t-0", told_inline()), []

    def first(_: KafkaError | None) -> None:
        told.append("first")

    waiters.add(5, first)
    waiters.add(5, lambda _: told.append("second"))
    waiters.forget(first)
    waiters.reached(5, None)
    assert told == ["second"]
    assert not waiters


def test_one_that_waits_again_when_it_is_told_is_kept() -> None:
    waiters = OffsetWaiters("t-0", told_inline())
    waiters.add(1, lambda _: waiters.add(9, lambda _: None))
    waiters.reached(1, None)
    assert waiters


def test_those_of_the_lowest_offsets_are_told_first_and_of_one_offset_those_who_came_first() -> None:
    waiters, told = OffsetWaiters("t-0", told_inline()), []
    for name, offset in (("a", 7), ("b", 3), ("c", 7), ("d", 5)):
        waiters.add(offset, lambda _, name=name: told.append(name))  # type: ignore[misc]
    waiters.reached(7, None)
    assert told == ["b", "d", "a", "c"]


def test_bytes_become_committed_with_the_end_of_their_batch() -> None:
    bytes_ = UncommittedBytes()
    bytes_.add(3, 100)
    bytes_.add(7, 50)
    assert [bytes_.take_up_to(offset) for offset in (2, 3, 6, 7, 9)] == [0, 100, 0, 50, 0]


def test_of_very_many_batches_the_last_ones_count_together() -> None:
    bytes_ = UncommittedBytes()
    for number in range(1, 3001):
        bytes_.add(number, 1)
    assert bytes_.take_up_to(1000) == 1000
    assert bytes_.take_up_to(2999) + bytes_.take_up_to(3000) == 2000
    bytes_.add(3001, 5)
    bytes_.clear()
    assert bytes_.take_up_to(4000) == 0
