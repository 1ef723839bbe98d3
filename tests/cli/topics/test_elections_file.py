"""The file of Kafka's kafka-leader-election."""

import json
from typing import Any

import pytest

from lamina.cli.kafka_file import KafkaFileError
from lamina.cli.topics.elections_file import read_partitions

GOOD = {"topic": "orders", "partition": 0}


def read(*partitions: Any, **more: Any) -> list[tuple[str, int]]:
    return read_partitions(json.dumps({"partitions": partitions, **more}).encode())


def test_partitions_are_read_in_their_order() -> None:
    assert read({"topic": "b", "partition": 3}, GOOD) == [("b", 3), ("orders", 0)]
    assert read(GOOD, version=1) == [("orders", 0)]


@pytest.mark.parametrize(
    "entry", ["orders", {}, GOOD | {"topic": 1}, GOOD | {"topic": ""}, GOOD | {"partition": 2**31}]
)
def test_an_entry_that_cannot_be_used_is_shown(entry: Any) -> None:
    with pytest.raises(KafkaFileError, match=r'is not \{"topic": …, "partition": N\}$'):
        read(entry)


def test_a_partition_twice_is_an_error() -> None:
    with pytest.raises(KafkaFileError, match="twice"):
        read(GOOD, GOOD)
