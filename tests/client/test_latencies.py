"""Percentiles in bounded memory."""

import pytest

from lamina.client.latencies import Latencies


def test_percentiles_are_true_to_a_percent() -> None:
    latencies = Latencies()
    for number in range(1, 100_001):
        latencies.add(number / 1000)
    for percent in (50, 95, 99, 99.9):
        assert latencies.percentile_ms(percent) == pytest.approx(percent * 1000, rel=0.01)
    assert latencies.largest_ms == 100_000


def test_memory_does_not_grow_with_the_number() -> None:
    latencies = Latencies()
    for number in range(1_000_000):
        latencies.add(number / 1e6)
    assert len(latencies._counts) < 3000


def test_of_nothing_nothing_is_said() -> None:
    assert Latencies().percentile_ms(50) is None
    assert Latencies().largest_ms is None
