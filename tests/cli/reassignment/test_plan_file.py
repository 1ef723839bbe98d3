"""The files of Kafka's kafka-reassign-partitions."""

import json
from typing import Any

import pytest

from lamina.cli.kafka_file import KafkaFileError
from lamina.cli.reassignment.plan_file import plan_text, read_plan, read_topics

GOOD = {"topic": "orders", "partition": 0, "replicas": [1, 2]}


def read(*partitions: Any) -> Any:
    return read_plan(json.dumps({"version": 1, "partitions": partitions}).encode())


def test_a_plan_is_read_in_its_order() -> None:
    assert read(GOOD | {"partition": 3}, GOOD | {"log_dirs": ["any", "any"]}) == {
        ("orders", 3): (1, 2),
        ("orders", 0): (1, 2),
    }


def test_what_is_written_is_what_the_tool_writes_and_is_read_again() -> None:
    plan = {("b", 0): (3,), ("a", 1): (1, 2)}
    text = plan_text(plan)
    assert text == (
        '{"version":1,"partitions":[{"topic":"a","partition":1,"replicas":[1,2],"log_dirs":["any","any"]},'
        '{"topic":"b","partition":0,"replicas":[3],"log_dirs":["any"]}]}'
    )
    assert read_plan(text.encode()) == plan


@pytest.mark.parametrize(
    "entry",
    [
        "orders",
        {},
        GOOD | {"topic": ""},
        GOOD | {"partition": -1},
        GOOD | {"replicas": []},
        GOOD | {"replicas": "1"},
        GOOD | {"replicas": [1, -1]},
        GOOD | {"replicas": [True]},
    ],
)
def test_an_entry_that_cannot_be_used_is_shown(entry: Any) -> None:
    with pytest.raises(KafkaFileError, match=r'is not \{"topic": …, "partition": N, "replicas": \[ID, …\]\}$'):
        read(entry)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([GOOD, GOOD], "names a partition twice"),
        ([GOOD | {"replicas": [1, 2, 1]}], "orders-0 is assigned twice to the same broker"),
        ([GOOD | {"log_dirs": ["any", "/disk-2"]}], "orders-0 asks for a log directory"),
        ([], "names no partition"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(entries: list[Any], says: str) -> None:
    with pytest.raises(KafkaFileError, match=says):
        read(*entries)


def test_topics_to_move() -> None:
    assert read_topics(b'{"topics": [{"topic": "b"}, {"topic": "a"}], "version": 1}') == ["b", "a"]
    for wrong in (b'{"topics": [{"topic": "b"}, {"topic": "b"}]}', b'{"topics": ["b"]}', b'{"topics": []}', b"[]"):
        with pytest.raises(KafkaFileError):
            read_topics(wrong)
