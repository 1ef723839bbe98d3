"""Names of partition directories; formats.md §2.1."""

import pytest

from lamina.log.names import (
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
)

HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize("topic", ["a", "with-dashes-0", "dots.and_more", "__consumer_offsets", "x" * 249])
def test_a_partition_directory_is_read_back(topic: str) -> None:
    assert parse_partition_directory(partition_directory(topic, 12)) == (topic, 12)


@pytest.mark.parametrize(
    "name", ["topic", "-0", "topic-", "topic-x", "topic-01", "to pic-0", f"topic-0.{HEX}-delete", "x" * 250 + "-0"]
)
def test_other_names_are_no_partitions(name: str) -> None:
    assert parse_partition_directory(name) is None


@pytest.mark.parametrize("kind", ["delete", "future", "stray"])
def test_a_directory_set_aside_is_no_partition(kind: str) -> None:
    assert parse_partition_directory(f"topic-0.{HEX}-{kind}") is None


def test_a_directory_to_be_deleted_has_a_legal_name() -> None:
    assert deleted_directory("topic", 3, HEX) == f"topic-3.{HEX}-delete"
    long = deleted_directory("x" * 249, 3, HEX)
    assert len(long) == 255
    assert is_deleted_directory(long)
    assert not is_deleted_directory("topic-3")
