"""Requests and responses of ten thousand entries: nothing of them holds up the loop for long."""

import itertools
import math
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from lamina.broker.requests import router
from lamina.broker.requests.handlers import fetch, metadata, offset_commit
from lamina.wire.codec import SIZE_BYTES, encode_entity, encode_request, encode_response
from lamina.wire.fetch_response import encode_fetch_response
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import request_schema
from tests.broker.in_process import CORRELATION_ID, InProcessBroker, NoSocket, build, counted_turns

COUNT = 10_000
PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, HEARTBEAT = 0, 1, 2, 3, 10, 12


def names() -> list[str]:
    return [f"none-{number}" for number in range(COUNT)]


def partitions(**facts: Any) -> list[dict[str, Any]]:
    return [{"partition": index, "partition_index": index, **facts} for index in range(COUNT)]


FETCHED = {"group_id": "g", "member_epoch": -1, "topics": [{"name": "none", "partition_indexes": range(COUNT)}]}
ENCODED_BY_ROUTER: dict[str, tuple[int, int, dict[str, Any]]] = {
    "OffsetFetch": (9, 9, {"groups": [FETCHED]}),
    "CreatePartitions": (37, 3, {"topics": [{"name": name, "count": 2} for name in names()]}),
    "IncrementalAlterConfigs": (
        44,
        1,
        {"resources": [{"resource_type": 2, "resource_name": name} for name in names()]},
    ),
    "DescribeTopicPartitions": (75, 0, {"topics": [{"name": name} for name in names()]}),
    "ListOffsets": (LIST_OFFSETS, 8, {"topics": [{"name": "none", "partitions": partitions(timestamp=-1)}]}),
    "OffsetCommit": (8, 9, {"group_id": "g", "topics": [{"name": "none", "partitions": partitions()}]}),
    "FindCoordinator": (FIND_COORDINATOR, 4, {"coordinator_keys": names()}),
    "DeleteTopics": (20, 6, {"topics": [{"name": name} for name in names()]}),
    "OffsetForLeaderEpoch": (23, 4, {"topics": [{"topic": "none", "partitions": partitions()}]}),
}
LARGE = ENCODED_BY_ROUTER | {
    "CreateTopics": (19, 7, {"topics": [{"name": f"{name}/"} for name in names()]}),
    "DescribeConfigs": (32, 4, {"resources": [{"resource_type": 2, "resource_name": name} for name in names()]}),
    "Fetch": (FETCH, 12, {"session_epoch": -1, "topics": [{"topic": "none", "partitions": partitions()}]}),
    "Metadata": (METADATA, 12, {"topics": [{"name": name} for name in names()]}),
}


class Spy:
    """On which threads messages are parsed and encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsed_on: list[threading.Thread] = []
        self.encoded_on: list[threading.Thread] = []
        parse, encode = router._parsed, encode_response

        def spied_parse(*given: Any) -> Any:
            self.parsed_on.append(threading.current_thread())
            return parse(*given)

        def spied_encode(*given: Any) -> Any:
            self.encoded_on.append(threading.current_thread())
            return encode(*given)

        monkeypatch.setattr(router, "_parsed", spied_parse)
        monkeypatch.setattr(router, "encode_response", spied_encode)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    broker = InProcessBroker(tmp_path, {"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"})
    broker.ask(FIND_COORDINATOR, 4, coordinator_keys=["g"])
    broker.settle()
    yield broker
    broker.close()


def frame_of(api_key: int, api_version: int, facts: dict[str, Any]) -> memoryview:
    request = build(request_schema(api_key, api_version), facts)
    return memoryview(encode_request(request, CORRELATION_ID, "test"))[SIZE_BYTES:]


def is_message_thread(thread: threading.Thread) -> bool:
    return thread.name.startswith("lamina-messages")


@pytest.mark.parametrize("api", LARGE)
def test_a_large_request_is_parsed_on_a_thread(broker: InProcessBroker, spy: Spy, api: str) -> None:
    api_key, api_version, facts = LARGE[api]
    broker.ask(api_key, api_version, **facts)
    assert list(map(is_message_thread, spy.parsed_on)) == [True]


@pytest.mark.parametrize("api", ENCODED_BY_ROUTER)
def test_a_response_of_many_entries_is_encoded_on_a_thread(broker: InProcessBroker, spy: Spy, api: str) -> None:
    api_key, api_version, facts = LARGE[api]
    broker.ask(api_key, api_version, **facts)
    assert list(map(is_message_thread, spy.encoded_on)) == [True]


IN_TURNS = [
    "OffsetFetch",
    "CreateTopics",
    "CreatePartitions",
    "IncrementalAlterConfigs",
    "DescribeTopicPartitions",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "FindCoordinator",
    "DeleteTopics",
    "OffsetForLeaderEpoch",
    "DescribeConfigs",
]


@pytest.mark.parametrize("api", IN_TURNS)
def test_entries_that_take_long_are_worked_on_in_turns(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    """Each entry takes as long as a turn may last."""
    api_key, api_version, facts = LARGE[api]
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    broker.ask(api_key, api_version, **facts)
    assert len(turns) >= COUNT


def test_a_topic_of_many_partitions_is_encoded_on_a_thread_once(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded_on = []

    def spied(entity: Any) -> Any:
        encoded_on.append(threading.current_thread())
        return encode_entity(entity)

    monkeypatch.setattr(metadata, "encode_entity", spied)
    monkeypatch.setattr(metadata, "_PARTITIONS_AT_A_TIME", 3)
    broker.create("t", 4)
    for _ in range(2):
        [topic] = broker.ask(METADATA, 12, topics=[{"name": "t"}]).topics
        assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2, 3]
    assert list(map(is_message_thread, encoded_on)) == [True]


def test_offsets_of_many_partitions_are_committed_in_several_batches(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t", 7)
    log = broker.parts.partitions.get("__consumer_offsets", 0).log
    asked = [
        {"partition_index": index % 7, "committed_offset": index, "committed_metadata": ""} for index in range(COUNT)
    ]
    asked += [{"partition_index": 7}]
    append = Mock(wraps=log.append)
    monkeypatch.setattr(log, "append", append)
    answer = broker.ask(
        8, 9, group_id="g", generation_id_or_member_epoch=-1, topics=[{"name": "t", "partitions": asked}]
    )
    assert [one.error_code for one in answer.topics[0].partitions] == [0] * COUNT + [3]
    assert append.call_count == math.ceil(COUNT / offset_commit._PARTITIONS_AT_A_TIME)
    group = {"group_id": "g", "member_epoch": -1, "topics": [{"name": "t", "partition_indexes": range(7)}]}
    [fetched] = broker.ask(9, 9, groups=[group]).groups
    last = {index % 7: index for index in range(COUNT)}
    assert {one.partition_index: one.committed_offset for one in fetched.topics[0].partitions} == last


def test_a_fetch_of_many_partitions_is_encoded_on_a_thread_and_remembered(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded_on = []

    def spied(*given: Any, **more: Any) -> Any:
        encoded_on.append(threading.current_thread())
        return encode_fetch_response(*given, **more)

    monkeypatch.setattr(fetch, "encode_fetch_response", spied)
    api_key, api_version, facts = LARGE["Fetch"]
    first = broker.ask(api_key, api_version, **facts | {"session_epoch": 0})
    assert len(first.responses[0].partitions) == COUNT
    assert broker.parts.fetch_sessions.partitions == COUNT
    next_one = {"session_id": first.session_id, "session_epoch": 1}
    again = broker.ask(api_key, api_version, **next_one)
    assert len(again.responses[0].partitions) == COUNT, "errors are told each time"
    assert list(map(is_message_thread, encoded_on)) == [True, True]


def test_errors_told_in_a_large_response_are_counted(broker: InProcessBroker) -> None:
    api_key, api_version, facts = LARGE["ListOffsets"]
    broker.ask(api_key, api_version, **facts)
    assert broker.parts.counters.requests[api_key, api_version].errors == {3: COUNT}


def test_a_small_request_is_parsed_and_answered_at_once(broker: InProcessBroker, spy: Spy) -> None:
    frame = frame_of(HEARTBEAT, 4, {"group_id": "g"})
    _, served = broker.parts.router.serve(NoSocket(), frame)
    assert isinstance(served, list)
    assert [*spy.parsed_on, *spy.encoded_on] == [threading.current_thread()] * 2


def test_a_large_produce_request_is_not_copied(broker: InProcessBroker, spy: Spy) -> None:
    data = {"index": 0, "records": bytes(2 * router.LARGE_REQUEST_BYTES)}
    frame = frame_of(PRODUCE, 9, {"acks": -1, "topic_data": [{"name": "none", "partition_data": [data]}]})
    assert broker.serve(bytearray(frame)) is not None
    assert spy.parsed_on == [threading.current_thread()]


def test_the_frame_of_a_large_request_is_free_at_once(broker: InProcessBroker) -> None:
    """Its bytes may be overwritten while it is parsed."""
    frame = frame_of(*LARGE["ListOffsets"])
    request, served = broker.parts.router.serve(NoSocket(), frame)
    assert not request.holds_frame
    frame[:] = bytes(len(frame))
    assert isinstance(served, Awaitable)
    assert len(broker._loop.run_until_complete(_awaited(served))[0]) > COUNT


def test_a_large_request_that_is_malformed_is_refused(broker: InProcessBroker) -> None:
    frame = frame_of(*LARGE["ListOffsets"])
    _, served = broker.parts.router.serve(NoSocket(), frame[:-COUNT])
    assert isinstance(served, Awaitable)
    with pytest.raises(MalformedRequest):
        broker._loop.run_until_complete(_awaited(served))


def test_a_large_fetch_whose_client_went_while_it_was_parsed_does_not_wait(broker: InProcessBroker) -> None:
    broker.create("t")
    asked = {"current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
    topic = {"topic": "t", "partitions": [{"partition": 0, **asked}] * COUNT}
    facts = {"max_wait": 100_000, "min_bytes": 1, "max_bytes": 1000, "session_epoch": -1, "topics": [topic]}
    request, served = broker.parts.router.serve(NoSocket(), frame_of(FETCH, 12, facts))
    assert isinstance(served, Awaitable)
    task = broker._loop.create_task(_awaited(served))
    broker.turn()
    request.abandon()
    broker.finish(task)


async def _awaited(response: Awaitable[Any]) -> Any:
    return await response
