import asyncio
from typing import Any

import pytest

from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of


def produce_to(broker: InProcessBroker, partitions: int) -> Any:
    data = [{"index": index, "records": batch_of(broker, index + 1)} for index in range(partitions)]
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": "t", "partition_data": data}])
    return response.responses[0].partition_responses


@pytest.mark.parametrize("partitions", [1, 8, 9, 100])
def test_every_partition_of_a_request_gets_its_batch_and_its_answer_in_order(
    broker: InProcessBroker, partitions: int
) -> None:
    broker.create("t", partitions)
    assert [(one.index, one.base_offset) for one in produce_to(broker, partitions)] == [
        (index, 0) for index in range(partitions)
    ]
    ends = [broker.node.partitions.get("t", index).log.log_end_offset for index in range(partitions)]
    assert ends == [index + 1 for index in range(partitions)]
    assert [one.base_offset for one in produce_to(broker, partitions)] == ends


def test_a_request_for_many_partitions_leaves_the_loop_to_others_in_between(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t", 100)
    turns = []
    sleep = asyncio.sleep

    async def count(seconds: float) -> None:
        turns.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", count)
    produce_to(broker, 100)
    assert turns == [0] * 12
