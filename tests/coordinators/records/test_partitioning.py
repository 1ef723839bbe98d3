"""Which partition a group lives in: examples of internal-topics.md §3.1 and 3.2, and Java's own values."""

import pytest

from lamina.coordinators.records.partitioning import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "partition"), [("g", 3), ("my-group", 12), ("console-consumer-1", 24), ("tx", 16), ("", 0)]
)
def test_the_examples_of_the_facts(text: str, partition: int) -> None:
    assert partition_of(text, 50) == partition


def test_the_hash_is_javas() -> None:
    assert java_hash("hello") == 99162322
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("ü") == 252
    assert java_hash("😀") == 0xD83D * 31 + 0xDE00


def test_the_one_hash_without_a_positive_twin_counts_as_zero() -> None:
    assert partition_of("polygenelubricants", 50) == 0
