"""How late loops were, read from the histograms of brokers."""

from bench.loop_lags import LoopLags


def metrics(*counts: int) -> str:
    """Timers within 1 ms, 10 ms and 1 s, each with those before it, and all."""
    lines = [
        f'lamina_event_loop_lag_seconds_bucket{{le="{bound}"}} {float(count)}'
        for bound, count in zip(("0.001", "0.01", "1.0", "+Inf"), counts, strict=True)
    ]
    return "\n".join(["# HELP lamina_event_loop_lag_seconds How late", *lines, "lamina_event_loop_lag_seconds_count 1"])


def test_shares_are_bounds_of_the_histogram() -> None:
    lags = LoopLags.of(metrics(98, 99, 100, 100))
    assert [lags.within_seconds(share) for share in (0.5, 0.98, 0.99, 1)] == [0.001, 0.001, 0.01, 1.0]


def test_what_came_later_than_every_bound_is_told() -> None:
    assert LoopLags.of(metrics(1, 1, 1, 2)).within_seconds(1) == float("inf")


def test_processes_are_added_and_earlier_looks_taken_away() -> None:
    late, quick = LoopLags.of(metrics(0, 0, 2, 2)), LoopLags.of(metrics(8, 8, 8, 8))
    assert (late + quick).within_seconds(0.8) == 0.001
    assert (late + quick).within_seconds(0.9) == 1.0
    assert ((late + quick) - late).within_seconds(1) == 0.001


def test_where_nothing_was_measured_nothing_was_late() -> None:
    assert LoopLags().within_seconds(1) == 0.0
