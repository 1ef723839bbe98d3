"""New partitions on disks that fail while they are made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from tests.broker.broken_disk import break_paths
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of

METADATA = 3


def two_directories(tmp_path: Path) -> InProcessBroker:
    return InProcessBroker(tmp_path / "data", {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"})


def error_of_produce(broker: InProcessBroker, topic: str, partition: int) -> int:
    data = {"index": partition, "records": batch_of(broker, 1)}
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": topic, "partition_data": [data]}])
    return int(response.responses[0].partition_responses[0].error_code)


def shown_partitions(broker: InProcessBroker, topic: str) -> int:
    found = broker.ask(METADATA, 9, topics=[{"name": topic}]).topics[0]
    assert found.error_code == ErrorCode.NONE
    return len(found.partitions)


@pytest.mark.parametrize(
    "is_broken",
    [
        lambda path: path.endswith("/one/t-2"),
        lambda path: path.endswith("/one/t-2/partition.metadata.tmp"),
        lambda path: "/one/t-2/" in path and "partition.metadata" not in path,
    ],
    ids=["making", "identity", "opening"],
)
def test_partitions_of_a_directory_that_fails_while_they_are_made_go_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[str], bool]
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        break_paths(patch, is_broken)
        broker.create("t", partitions=4)
    assert broker.node.directories[0].failure is not None, "the test breaks what it means to break"
    assert shown_partitions(broker, "t") == 4
    assert [broker.produce("t", 1, partition=index) for index in range(4)] == [0, 0, 0, 0]
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(4)] == [1, 1, 1, 1], "the right ones are found"
    broker.close()


def test_partitions_that_were_made_when_their_directory_failed_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path.startswith(f"{tmp_path}/one/recovery-point-offset-checkpoint"))
        broker.create("t", partitions=2)
    assert shown_partitions(broker, "t") == 2
    assert [error_of_produce(broker, "t", index) for index in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [0, 1]
    broker.close()


def test_partitions_that_no_directory_can_take_answer_with_a_storage_error_until_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("old")
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: "/t-" in path)
        broker.create("t", partitions=2)
    assert shown_partitions(broker, "t") == 2
    assert [error_of_produce(broker, "t", index) for index in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [0, 0]
    broker.close()
