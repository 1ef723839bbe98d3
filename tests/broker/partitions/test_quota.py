"""How fast bytes pass, over the last windows (R77)."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.broker.partitions.quota import Quota
from tests.driven_clock import DrivenClock

COUNT, WINDOW_MS = 11, 1000


class Measured:
    def __init__(self, bytes_per_second: int = 1000) -> None:
        self.clock = DrivenClock()
        self.now_ms = 5_000_500
        self.clock.monotonic_ms = lambda: self.now_ms
        self.quota = Quota(COUNT, WINDOW_MS, self.clock.clocks, bytes_per_second)


def test_the_first_bytes_after_a_pause_may_fill_a_whole_window() -> None:
    measured = Measured()
    assert not measured.quota.is_exceeded()
    measured.quota.record(1000)
    assert not measured.quota.is_exceeded()
    measured.quota.record(1)
    assert measured.quota.is_exceeded()


def test_what_was_too_much_is_waited_for() -> None:
    measured = Measured()
    measured.quota.record(1500)
    assert measured.quota.over_ms() == 500
    measured.now_ms += 1499
    assert measured.quota.over_ms() == 1
    measured.now_ms += 1
    assert measured.quota.over_ms() == 0


def test_nobody_is_told_to_wait_for_longer_than_a_window() -> None:
    """The rate may be another one by then."""
    measured = Measured()
    measured.quota.record(10**9)
    assert measured.quota.over_ms() == WINDOW_MS


def test_what_came_before_all_windows_is_forgotten() -> None:
    measured = Measured()
    measured.quota.record(10**9)
    measured.now_ms += COUNT * WINDOW_MS - 1
    assert measured.quota.is_exceeded()
    measured.now_ms += 1
    assert not measured.quota.is_exceeded()


def test_another_rate_holds_at_once() -> None:
    measured = Measured()
    measured.quota.record(5000)
    measured.quota.bytes_per_second = 5000
    assert not measured.quota.is_exceeded()
    measured.quota.bytes_per_second = 0
    assert measured.quota.over_ms() == WINDOW_MS


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 20_000)), max_size=60),
)
def test_who_waits_as_told_never_passes_more_than_the_rate_and_one_piece(
    rate: int, pieces: list[tuple[int, int]]
) -> None:
    measured = Measured(rate)
    began_ms, passed, largest = measured.now_ms, 0, 0
    for pause_ms, size in pieces:
        measured.now_ms += pause_ms
        while wait_ms := measured.quota.over_ms():
            measured.now_ms += wait_ms
        measured.quota.record(size)
        passed, largest = passed + size, max(largest, size)
        lasted_ms = measured.now_ms - began_ms
        # Each time that all windows were empty, one may be filled at once.
        bursts = 1 + lasted_ms // (COUNT * WINDOW_MS)
        assert passed <= rate * (lasted_ms + bursts * WINDOW_MS) / 1000 + (bursts + 1) * largest
