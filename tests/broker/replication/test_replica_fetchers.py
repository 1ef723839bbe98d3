"""Which fetcher copies a partition."""

import pytest

from lamina.broker.replication.replica_fetchers import fetcher_number


@pytest.mark.parametrize(
    ("topic", "index", "mixed"),
    [
        ("hello", 0, 31 * 99162322 % 2**32 - 2**32),
        ("a", 7, 31 * 97 + 7),
        ("polygenelubricants", 1, -(2**31) + 1),
    ],
)
def test_r2_partitions_are_spread_as_kafka_spreads_them(topic: str, index: int, mixed: int) -> None:
    """The hash codes are Java's."""
    for count in (1, 2, 7, 1000):
        assert fetcher_number(topic, index, count) == abs(mixed) % count


def test_r2_the_one_number_without_an_absolute_value_counts_as_0() -> None:
    """Java's hash code of this word is the smallest number that there is."""
    assert fetcher_number("polygenelubricants", 0, 7) == 0
