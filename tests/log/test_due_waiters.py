"""Telling those who waited: in order, so many in a turn, and none of them costs the others."""

from collections import deque
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from lamina.log.due_waiters import AT_A_TIME, DueWaiters


class Loop:
    """Turns that come when the test says so."""

    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.failed = Mock()
        self.due = DueWaiters(self.soon.append, self.failed)
        self.told: list[int] = []

    def waiters(self, *numbers: int) -> list[Callable[[None], object]]:
        return [lambda _, number=number: self.told.append(number) for number in numbers]  # type: ignore[misc]

    def turn(self) -> int:
        """How many were told in it."""
        before = len(self.told)
        for _ in range(len(self.soon)):
            self.soon.popleft()()
        return len(self.told) - before


def test_very_many_are_told_in_turns_whatever_they_waited_for() -> None:
    loop, many = Loop(), 2 * AT_A_TIME + 1
    for number in range(many):
        loop.due.tell(f"t-{number}", loop.waiters(number), None)
    assert len(loop.told) == AT_A_TIME
    loop.due.tell("t-0", loop.waiters(*range(many, 2 * many)), None)
    assert [loop.turn() for _ in range(5)] == [AT_A_TIME, AT_A_TIME, AT_A_TIME, 2, 0]
    assert loop.told == list(range(2 * many))
    assert not loop.soon


def test_no_turn_tells_more_than_it_may_whatever_was_told_in_those_before() -> None:
    loop = Loop()
    for number in range(3 * AT_A_TIME):
        before = len(loop.told)
        loop.due.tell("t-0", loop.waiters(number), None)
        assert loop.told == list(range(number + 1)), "one alone is told at once"
        loop.due.tell("t-0", loop.waiters(*[-1] * 2 * AT_A_TIME), None)
        assert AT_A_TIME // 2 < len(loop.told) - before <= AT_A_TIME
        while loop.soon:
            assert loop.turn() <= AT_A_TIME
        loop.told[:] = range(number + 1)


def test_few_need_no_turn_of_their_own() -> None:
    loop = Loop()
    for number in range(AT_A_TIME // 2):
        loop.due.tell("t-0", loop.waiters(number), None)
    assert (len(loop.told), len(loop.soon)) == (AT_A_TIME // 2, 0)


def test_one_that_need_not_wait_is_told_at_once_unless_others_are_before_it() -> None:
    loop = Loop()
    at_once, behind = loop.waiters(-1, -2)
    loop.due.tell_at_once("t-0", at_once, None)
    assert loop.told == [-1]
    loop.due.tell("t-0", loop.waiters(*range(AT_A_TIME + 1)), None)
    loop.due.tell_at_once("t-0", behind, None)
    loop.turn()
    assert loop.told == [-1, *range(AT_A_TIME + 1), -2]


def test_who_is_told_may_let_others_go_on_who_are_told_after_those_before_them() -> None:
    loop = Loop()
    first = lambda _: loop.due.tell("t-1", loop.waiters(3), None)  # noqa: E731
    loop.due.tell("t-0", [first, *loop.waiters(1, 2)], None)
    assert loop.told == [1, 2, 3]


def test_one_that_fails_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    for _ in range(2):
        loop.due.tell("t-0", [Mock(side_effect=ValueError("a bug")), *loop.waiters(1)], None)
    assert (loop.failed.call_count, loop.told) == (2, [1, 1])
    assert caplog.messages == ["one who waited for t-0 failed"] * 2


def test_what_ends_the_process_leaves_the_rest_for_the_next_turn() -> None:
    loop = Loop()
    with pytest.raises(KeyboardInterrupt):
        loop.due.tell("t-0", [Mock(side_effect=KeyboardInterrupt), *loop.waiters(1)], None)
    assert loop.turn() == 1
