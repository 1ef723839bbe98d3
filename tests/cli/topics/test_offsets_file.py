"""The file of Kafka's kafka-delete-records."""

import json
from typing import Any

import pytest

from lamina.cli.kafka_file import KafkaFileError
from lamina.cli.topics.offsets_file import Mark, read_marks

GOOD = {"topic": "orders", "partition": 0, "offset": 7}


def read(*partitions: Any, **more: Any) -> list[Mark]:
    return read_marks(json.dumps({"partitions": partitions, **more}).encode())


def test_partitions_are_read_and_the_version_may_be_left_out() -> None:
    assert read(GOOD, GOOD | {"partition": 1, "offset": -1}, version=1) == [Mark("orders", 0, 7), Mark("orders", 1, -1)]
    assert read(GOOD) == [Mark("orders", 0, 7)]


@pytest.mark.parametrize(
    "entry",
    [
        "orders",
        {},
        GOOD | {"topic": ""},
        GOOD | {"topic": 1},
        GOOD | {"partition": -1},
        GOOD | {"partition": True},
        GOOD | {"partition": "0"},
        GOOD | {"offset": -2},
        GOOD | {"offset": 2**63},
        GOOD | {"offset": 1.5},
    ],
)
def test_an_entry_that_cannot_be_used_is_shown(entry: Any) -> None:
    with pytest.raises(KafkaFileError, match=r'is not \{"topic"'):
        read(entry)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "an object"),
        (b'{"partitions": {}}', "an object"),
        (b'{"partitions": []}', "no partition"),
        (json.dumps({"version": 2, "partitions": [GOOD]}).encode(), "version 2"),
        (json.dumps({"partitions": [GOOD, GOOD]}).encode(), "twice"),
    ],
)
def test_a_file_that_cannot_be_used_gets_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(KafkaFileError, match=sentence):
        read_marks(data)
