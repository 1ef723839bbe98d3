"""Rates and the waits that follow from them, against slow models and the numbers measured on Kafka 4.1 (S61, S64)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.security import rates
from lamina.security.rates import Measures, SampledRate, TokenBucket

WINDOWS, WINDOW_MS = 11, 1000

events = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 1_000_000)), max_size=60)
"""Pauses before amounts."""


class SlowRate:
    """Keeps every amount, and puts them into windows anew whenever it is asked."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows, self._window_ms = windows, window_ms
        self._events: list[tuple[int, int]] = []

    def record(self, amount: int, now_ms: int) -> None:
        self._events.append((now_ms, amount))

    def _samples(self, now_ms: int) -> list[list[tuple[int, int]]]:
        samples: list[list[tuple[int, int]]] = []
        for at_ms, amount in self._events:
            is_old = not samples or at_ms - samples[-1][0][0] >= self._window_ms
            if is_old or at_ms - samples[-1][-1][0] >= self._windows * self._window_ms:
                samples.append([])
            samples[-1].append((at_ms, amount))
        return [one for one in samples if now_ms - one[-1][0] < self._windows * self._window_ms]

    def total_and_ms(self, now_ms: int) -> tuple[int, int]:
        samples = self._samples(now_ms)
        began_ms = samples[0][0][0] if samples else now_ms
        lasted_ms = now_ms - began_ms
        full = lasted_ms // self._window_ms
        lasted_ms += max(0, self._windows - 1 - full) * self._window_ms
        return sum(amount for one in samples for _, amount in one), max(1, lasted_ms)


def test_a_burst_waits_as_long_as_with_kafka() -> None:
    """S61."""
    rate = SampledRate(WINDOWS, WINDOW_MS)
    rate.record(750_000, 0)
    assert rate.throttle_ms(50_000, 15) == 4_985
    rate.record(250_000, 5_009)
    assert rate.throttle_ms(50_000, 5_009) == 9_991


def test_the_wait_is_what_the_formula_says() -> None:
    """S61."""
    rate = SampledRate(WINDOWS, WINDOW_MS)
    rate.record(900_000, 0)
    lasted_ms = 10_250
    measured = rate.per_second(250)
    assert measured == 900_000 * 1000 / lasted_ms
    assert rate.throttle_ms(50_000, 250) == round((measured - 50_000) / 50_000 * lasted_ms)


def test_within_the_limit_nobody_waits() -> None:
    rate = SampledRate(WINDOWS, WINDOW_MS)
    assert rate.throttle_ms(1, 0) == 0
    rate.record(500_000, 0)
    assert rate.throttle_ms(50_000, 0) == 0
    rate.record(1, 0)
    rate.record(499, 0)
    assert rate.throttle_ms(50_000, 0) == 10


def test_time_without_amounts_lowers_a_rate_only_once_all_windows_have_passed() -> None:
    """S61: so whoever has waited as told may be told to wait again, as with Kafka."""
    rate = SampledRate(WINDOWS, WINDOW_MS)
    rate.record(750_000, 0)
    assert rate.throttle_ms(50_000, 0) == 5000
    assert rate.throttle_ms(50_000, 5000) == 5000
    assert rate.throttle_ms(50_000, 5999) == 4001
    rate.record(1, 10_000)
    assert rate.throttle_ms(50_000, 10_999) == 4001
    assert rate.throttle_ms(50_000, 11_000) == 0


def test_amounts_are_forgotten_with_their_window() -> None:
    rate = SampledRate(WINDOWS, WINDOW_MS)
    rate.record(10, 0)
    rate.record(10, 999)
    assert not rate.is_idle(11_998)
    assert rate.is_idle(11_999)
    assert rate.per_second(11_999) == 0


@given(events, st.integers(0, 30_000))
def test_a_rate_is_that_of_the_slow_model(given_events: list[tuple[int, int]], after_ms: int) -> None:
    rate, model, now_ms = SampledRate(WINDOWS, WINDOW_MS), SlowRate(WINDOWS, WINDOW_MS), 0
    for pause_ms, amount in given_events:
        now_ms += pause_ms
        rate.record(amount, now_ms)
        model.record(amount, now_ms)
        total, lasted_ms = model.total_and_ms(now_ms)
        assert rate.per_second(now_ms) == total * 1000 / lasted_ms
    now_ms += after_ms
    total, lasted_ms = model.total_and_ms(now_ms)
    assert rate.per_second(now_ms) == total * 1000 / lasted_ms
    assert rate.throttle_ms(1000, now_ms) == max(0, total - lasted_ms)
    assert rate.is_idle(now_ms) == (not model._samples(now_ms))


@given(events)
def test_what_is_taken_back_at_once_was_never_there(given_events: list[tuple[int, int]]) -> None:
    """So a throttled fetch is unrecorded (S63)."""
    rate, now_ms = SampledRate(WINDOWS, WINDOW_MS), 0
    for pause_ms, amount in given_events:
        now_ms += pause_ms
        rate.record(amount, now_ms)
    before = rate.per_second(now_ms)
    rate.record(123, now_ms)
    rate.record(-123, now_ms)
    assert rate.per_second(now_ms) == before


# Tokens


def test_a_full_bucket_lends_to_the_one_that_overdraws_it() -> None:
    """S64."""
    bucket = TokenBucket()
    bucket.take(10, rate=1, burst_seconds=11, now_ms=1_000_000)
    assert bucket.throttle_ms(1, 11, 1_000_000) == 0
    bucket.take(10, rate=1, burst_seconds=11, now_ms=1_000_000)
    assert bucket.throttle_ms(1, 11, 1_000_000) == 9_000
    assert bucket.throttle_ms(1, 11, 1_004_000) == 5_000
    assert bucket.throttle_ms(1, 11, 1_009_000) == 0


def test_a_bucket_holds_no_more_than_a_burst() -> None:
    bucket = TokenBucket()
    bucket.take(0, 2, 11, 0)
    bucket.take(22, 2, 11, 1_000_000)
    assert bucket.throttle_ms(2, 11, 1_000_000) == 0
    assert not bucket.is_idle(1_000_000)
    assert not bucket.is_idle(1_010_999)
    assert bucket.is_idle(1_011_000)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 50)), max_size=60), st.integers(1, 20))
def test_a_bucket_is_that_of_the_slow_model(given_events: list[tuple[int, int]], rate: int) -> None:
    """The model fills it millisecond by millisecond, in thousandths of a token."""
    bucket, tokens, now_ms = TokenBucket(), 11 * rate * 1000, 0
    for pause_ms, amount in given_events:
        for _ in range(pause_ms):
            tokens = min(11 * rate * 1000, tokens + rate)
        now_ms += pause_ms
        bucket.take(amount, rate, 11, now_ms)
        tokens -= amount * 1000
        assert abs(bucket.throttle_ms(rate, 11, now_ms) - max(0, -tokens / rate)) <= 1


# Many


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 5), st.integers(1, 100)), max_size=80))
def test_to_forget_who_is_idle_changes_nothing(given_events: list[tuple[int, int, int]]) -> None:
    measures: Measures[int, SampledRate] = Measures(lambda: SampledRate(3, WINDOW_MS))
    everybody = {key: SampledRate(3, WINDOW_MS) for key in range(6)}
    now_ms = 0
    for pause_ms, key, amount in given_events:
        now_ms += pause_ms
        measures.get(key, now_ms).record(amount, now_ms)
        everybody[key].record(amount, now_ms)
        for other in everybody:
            assert measures.get(other, now_ms).per_second(now_ms) == everybody[other].per_second(now_ms)


def test_only_those_who_came_lately_are_remembered() -> None:
    measures: Measures[int, SampledRate] = Measures(lambda: SampledRate(WINDOWS, WINDOW_MS))
    for number in range(10_000):
        measures.get(number, number * 100).record(1, number * 100)
    assert len(measures) <= 111


def test_there_is_a_most_of_those_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes with a new client id each time costs no more memory, and who goes on is measured on."""
    monkeypatch.setattr(rates, "MOST_MEASURES", 10)
    measures: Measures[int, SampledRate] = Measures(lambda: SampledRate(WINDOWS, WINDOW_MS))
    for number in range(1, 1000):
        measures.get(0, 0).record(1, 0)
        measures.get(number, 0).record(1, 0)
        assert len(measures) <= 10
    slow = SampledRate(WINDOWS, WINDOW_MS)
    slow.record(999, 0)
    assert measures.get(0, 0).per_second(0) == slow.per_second(0)
