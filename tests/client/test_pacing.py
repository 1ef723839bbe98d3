"""A steady rate."""

from itertools import pairwise

from lamina.client.pacing import Pacer


def run(pacer: Pacer, seconds: float, lateness: float = 0.0) -> list[float]:
    """When records go out, for a sleeper that always wakes a little late."""
    now, times = 0.0, []
    while now < seconds:
        if delay := pacer.delay(now):
            now += delay + lateness
            continue
        pacer.sent(now)
        times.append(now)
    return times


def test_records_go_out_evenly() -> None:
    times = run(Pacer(10, 0.0), 2)
    assert len(times) == 20
    assert all(abs(later - earlier - 0.1) < 0.01 for earlier, later in pairwise(times))


def test_a_sleeper_that_wakes_late_loses_nothing() -> None:
    assert abs(len(run(Pacer(1000, 0.0), 10, lateness=0.004)) - 10_000) <= 10


def test_a_long_silence_is_not_made_up_for() -> None:
    pacer = Pacer(100, 0.0)
    pacer.sent(0.0)
    sent = 0
    while not pacer.delay(60.0):
        pacer.sent(60.0)
        sent += 1
    assert sent <= 12
