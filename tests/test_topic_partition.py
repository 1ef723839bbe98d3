"""Partitions by their topics, and by name."""

from lamina.topic_partition import by_topic, name_of


def test_the_partitions_of_a_topic_are_together_in_the_order_in_which_they_were_given() -> None:
    assert by_topic([("b", 2), ("a", 0), ("b", 1)]) == {"b": [2, 1], "a": [0]}
    assert list(by_topic([("b", 2), ("a", 0)])) == ["b", "a"]
    assert by_topic([]) == {}


def test_a_partition_is_named_as_its_directory_is() -> None:
    assert name_of(("orders-2024", 7)) == "orders-2024-7"
