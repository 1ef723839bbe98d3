from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 21


def delete(broker: InProcessBroker, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> Any:
    partitions = [{"partition_index": partition, "offset": offset}]
    response = broker.ask(API_KEY, version, topics=[{"name": topic, "partitions": partitions}])
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("version", range(3))
def test_every_version_moves_the_start_of_the_log_and_tells_where_it_is(broker: InProcessBroker, version: int) -> None:
    broker.create("t")
    broker.produce("t", 10)
    moved = delete(broker, "t", 4, version=version)
    assert (moved.partition_index, moved.error_code, moved.low_watermark) == (0, 0, 4)
    earliest = {"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}
    found = broker.ask(2, 7, topics=[{"name": "t", "partitions": [earliest]}])
    assert found.topics[0].partitions[0].offset == 4


def test_minus_one_deletes_up_to_the_high_watermark_and_appends_go_on(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.produce("t", 10)
    assert delete(broker, "t", -1).low_watermark == 10
    assert broker.produce("t", 1) == 10
    broker.restart()
    assert broker.parts.partitions.get("t", 0).log.log_start_offset == 10


def test_the_start_never_moves_back(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.produce("t", 10)
    delete(broker, "t", 6)
    back = delete(broker, "t", 2)
    assert (back.error_code, back.low_watermark) == (0, 6)


def test_what_cannot_be_deleted_is_refused(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.create("compacted", cleanup_policy="compact")
    broker.create("__consumer_offsets")
    broker.produce("t", 10)
    refused = [
        delete(broker, "t", 11),
        delete(broker, "t", -2),
        delete(broker, "t", 0, partition=1),
        delete(broker, "none", 0),
        delete(broker, "compacted", 0),
        delete(broker, "__consumer_offsets", 0),
    ]
    assert [answer.error_code for answer in refused] == [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert {answer.low_watermark for answer in refused} == {-1}


def test_a_partition_that_is_offline_says_so(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.parts.partitions.failed("t", 0, RuntimeError("a test"))
    assert delete(broker, "t", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
