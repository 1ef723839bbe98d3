"""How many may be connected without having logged in, and how long (S85)."""

import asyncio
from collections.abc import Callable

from lamina.broker.login.strangers import Strangers


class Loop:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, told: Callable[[], None]) -> object:
        return self.call_at(self.now + seconds, told)

    def call_at(self, when: float, told: Callable[[], None]) -> object:
        self.timers.append((when, told))
        return object()

    def turn(self, to: float) -> None:
        self.now = to
        due = [told for when, told in self.timers if when <= to]
        self.timers = [(when, told) for when, told in self.timers if when > to]
        for told in due:
            told()


class Stranger:
    def __init__(self) -> None:
        self.refused: list[str] = []
        self.gone: list[Callable[[], None]] = []

    def when_gone(self, told: Callable[[], None]) -> None:
        self.gone.append(told)

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)


def strangers(loop: Loop, most: int = 3) -> Strangers:
    as_loop: asyncio.AbstractEventLoop = loop  # type: ignore[assignment]
    return Strangers(as_loop, most, seconds=30)


def test_who_does_not_log_in_is_closed_in_time() -> None:
    loop = Loop()
    room = strangers(loop)
    first, second, quick = Stranger(), Stranger(), Stranger()
    room.came(first)
    loop.turn(10)
    room.came(quick)
    room.came(second)
    room.left(quick)
    loop.turn(29)
    assert not first.refused
    loop.turn(30)
    assert first.refused == ["it did not log in within 30 s"]
    assert not second.refused
    loop.turn(40)
    assert second.refused
    assert not quick.refused
    assert len(room) == 0
    assert not loop.timers


def test_beyond_the_bound_the_oldest_goes() -> None:
    loop = Loop()
    room = strangers(loop, most=2)
    oldest, middle, newest = Stranger(), Stranger(), Stranger()
    for one in (oldest, middle, newest):
        room.came(one)
    assert "more than 2" in oldest.refused[0]
    assert not middle.refused
    assert not newest.refused
    assert len(room) == 2


def test_who_is_gone_counts_no_more() -> None:
    loop = Loop()
    room = strangers(loop, most=1)
    gone, here = Stranger(), Stranger()
    room.came(gone)
    gone.gone[0]()
    room.came(here)
    assert not gone.refused
    loop.turn(30)
    assert not gone.refused
    assert here.refused
