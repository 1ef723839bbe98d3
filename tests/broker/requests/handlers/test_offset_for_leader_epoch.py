import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 23


def end_of(
    broker: InProcessBroker, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> tuple[int, int, int]:
    """(error code, epoch, end offset)"""
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    response = broker.ask(API_KEY, version, replica_id=-1, topics=[{"topic": "t", "partitions": [asked]}])
    [topic] = response.topics
    [answer] = topic.partitions
    assert (topic.topic, answer.partition) == ("t", partition)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", range(2, 5))
def test_every_version_tells_where_an_epoch_ends(broker: InProcessBroker, version: int) -> None:
    broker.create("t")
    broker.produce("t", 10)
    broker.restart()
    broker.produce("t", 5)
    assert end_of(broker, 0, version=version) == (0, 0, 10)
    assert end_of(broker, 1, version=version) == (0, 1, 15)
    assert end_of(broker, 2, version=version) == (0, -1, -1)
    assert end_of(broker, -1, version=version) == (0, -1, -1)


def test_an_epoch_in_which_nothing_was_written_ends_where_the_log_does(broker: InProcessBroker) -> None:
    broker.create("t")
    assert end_of(broker, 0) == (0, 0, 0)
    broker.produce("t", 10)
    for _ in range(3):
        broker.restart()
    assert end_of(broker, 0) == (0, 0, 10)
    assert end_of(broker, 2) == (0, 0, 10)
    assert end_of(broker, 3) == (0, 3, 10)
    assert end_of(broker, 4) == (0, -1, -1)


def test_an_empty_log_knows_its_epochs_too(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.restart()
    assert end_of(broker, 0) == (0, 0, 0)
    assert end_of(broker, 1) == (0, 1, 0)


def test_a_client_in_another_epoch_is_told(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.restart()
    assert end_of(broker, 0, current=1) == (0, 0, 0)
    assert end_of(broker, 0, current=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert end_of(broker, 0, current=2) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_a_partition_that_is_not_here_or_offline_is_told(broker: InProcessBroker) -> None:
    broker.create("t")
    assert end_of(broker, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    broker.parts.partitions.failed("t", 0, RuntimeError("a test"))
    assert end_of(broker, 0) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)
