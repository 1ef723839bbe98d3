"""Requests and responses of ten thousand entries: nothing of them holds up the loop for long."""

import gc
import itertools
import math
import threading
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from lamina.broker.requests import encoded_entries, fetch_sessions, router
from lamina.broker.requests.handlers import fetch, metadata, offset_commit, offset_delete
from lamina.wire.codec import SIZE_BYTES, encode_entity, encode_request, encode_response, encode_response_around
from lamina.wire.fetch_response import encode_fetch_response
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import request_schema
from tests.broker.in_process import CORRELATION_ID, InProcessBroker, NoSocket, build, counted_turns

COUNT = 10_000
PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, HEARTBEAT, OFFSET_DELETE = 0, 1, 2, 3, 10, 12, 47
GROUP_ID_NOT_FOUND = 69


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
    "IncrementalAlterConfigs of loggers": (
        44,
        1,
        {"resources": [{"resource_type": 8, "resource_name": name} for name in names()]},
    ),
    "DescribeTopicPartitions": (75, 0, {"topics": [{"name": name} for name in names()]}),
    "ListOffsets": (LIST_OFFSETS, 8, {"topics": [{"name": "none", "partitions": partitions(timestamp=-1)}]}),
    "OffsetCommit": (8, 9, {"group_id": "g", "topics": [{"name": "none", "partitions": partitions()}]}),
    "OffsetDelete": (OFFSET_DELETE, 0, {"group_id": "g", "topics": [{"name": "none", "partitions": partitions()}]}),
    "FindCoordinator": (FIND_COORDINATOR, 4, {"coordinator_keys": names()}),
    "DeleteTopics": (20, 6, {"topics": [{"name": name} for name in names()]}),
    "OffsetForLeaderEpoch": (23, 4, {"topics": [{"topic": "none", "partitions": partitions()}]}),
}
ENCODED_BY_ENTRIES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "CreateTopics": (19, 7, {"topics": [{"name": f"{name}/"} for name in names()]}),
    "DescribeConfigs": (32, 4, {"resources": [{"resource_type": 2, "resource_name": name} for name in names()]}),
}
LARGE = {
    **ENCODED_BY_ROUTER,
    **ENCODED_BY_ENTRIES,
    "Fetch": (FETCH, 12, {"session_epoch": -1, "topics": [{"topic": "none", "partitions": partitions()}]}),
    "Fetch with a session": (
        FETCH,
        12,
        {"session_epoch": 0, "topics": [{"topic": "none", "partitions": partitions()}]},
    ),
    "Metadata": (METADATA, 12, {"topics": [{"name": name} for name in names()]}),
}


class Spy:
    """On which threads messages are parsed, encoded, and put together from encoded entries."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsed_on: list[threading.Thread] = []
        self.encoded_on: list[threading.Thread] = []
        self.put_together_on: list[threading.Thread] = []
        parse, encode, put_together = router._parsed, encode_response, encode_response_around

        def spied_parse(*given: Any) -> Any:
            self.parsed_on.append(threading.current_thread())
            return parse(*given)

        def spied_encode(*given: Any) -> Any:
            self.encoded_on.append(threading.current_thread())
            return encode(*given)

        def spied_put_together(*given: Any) -> Any:
            self.put_together_on.append(threading.current_thread())
            return put_together(*given)

        monkeypatch.setattr(router, "_parsed", spied_parse)
        monkeypatch.setattr(router, "encode_response", spied_encode)
        monkeypatch.setattr(encoded_entries, "encode_response_around", spied_put_together)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    broker = InProcessBroker(tmp_path, {"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"})
    broker.ask(FIND_COORDINATOR, 4, coordinator_keys=["g"])
    broker.settle()
    broker.create("held")
    commit(broker, "held", [0])
    yield broker
    broker.close()


def commit(broker: InProcessBroker, topic: str, indexes: Iterable[int]) -> None:
    """Offset 5 of each partition, by a group that has no members."""
    asked = [{"partition_index": index, "committed_offset": 5, "committed_metadata": ""} for index in indexes]
    topics = [{"name": topic, "partitions": asked}]
    [answered] = broker.ask(8, 9, group_id="g", generation_id_or_member_epoch=-1, topics=topics).topics
    assert not any(one.error_code for one in answered.partitions)


def delete(broker: InProcessBroker, topic: str, indexes: Iterable[int]) -> list[int]:
    """What is told of each partition."""
    topics = [{"name": topic, "partitions": [{"partition_index": index} for index in indexes]}]
    answer = broker.ask(OFFSET_DELETE, 0, group_id="g", topics=topics)
    assert answer.error_code == 0
    return [one.error_code for one in answer.topics[0].partitions]


def committed(broker: InProcessBroker, topic: str, indexes: Iterable[int]) -> list[int]:
    group = {"group_id": "g", "member_epoch": -1, "topics": [{"name": topic, "partition_indexes": indexes}]}
    [fetched] = broker.ask(9, 9, groups=[group]).groups
    return [one.committed_offset for one in fetched.topics[0].partitions]


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


@pytest.mark.parametrize("api", ENCODED_BY_ENTRIES)
def test_a_response_of_many_encoded_entries_is_put_together_on_a_thread(
    broker: InProcessBroker, spy: Spy, api: str
) -> None:
    api_key, api_version, facts = LARGE[api]
    broker.ask(api_key, api_version, **facts)
    assert list(map(is_message_thread, spy.put_together_on)) == [True]


def test_a_response_of_few_encoded_entries_is_put_together_at_once(broker: InProcessBroker, spy: Spy) -> None:
    broker.ask(32, 4, resources=[{"resource_type": 2, "resource_name": "none"}])
    assert spy.put_together_on == [threading.current_thread()]


IN_TURNS = {
    "OffsetFetch": 1,
    "CreateTopics": 3,
    "CreatePartitions": 2,
    "IncrementalAlterConfigs": 3,
    "IncrementalAlterConfigs of loggers": 3,
    "DescribeTopicPartitions": 1,
    "Fetch": 4,
    "Fetch with a session": 5,
    "ListOffsets": 1,
    "Metadata": 2,
    "OffsetCommit": 1,
    "FindCoordinator": 1,
    "OffsetDelete": 2,
    "DeleteTopics": 2,
    "OffsetForLeaderEpoch": 1,
    "DescribeConfigs": 1,
}
"""How often a request goes through its entries at least, each time in turns."""


@pytest.mark.parametrize("api", IN_TURNS)
def test_entries_that_take_long_are_worked_on_in_turns(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    api_key, api_version, facts = LARGE[api]
    turns = turns_of_entries(broker, monkeypatch)
    broker.ask(api_key, api_version, **facts)
    assert len(turns) >= IN_TURNS[api] * COUNT


def turns_of_entries(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One for each entry from now on: each takes as long as a turn may last."""
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    return counted_turns(monkeypatch)


def test_what_follows_from_a_change_is_done_in_turns(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [f"t{number}" for number in range(5)]
    for name in few:
        broker.create(name)
    turns = turns_of_entries(broker, monkeypatch)
    configs = [{"name": "retention.ms", "config_operation": 0, "value": "1000"}]
    resources = [{"resource_type": 2, "resource_name": name, "configs": configs} for name in few]
    assert [one.error_code for one in broker.ask(44, 1, resources=resources).responses] == [0] * 5
    sorted_, decided, configured, answered = [5] * 4
    assert len(turns) == sorted_ + decided + configured + answered
    assert broker.parts.partitions.get("t4", 0).log.config.retention_ms == 1000
    turns.clear()
    topics = [{"name": name, "count": 2, "assignments": None} for name in few]
    assert [one.error_code for one in broker.ask(37, 3, topics=topics).results] == [0] * 5
    decided, configured, adopted, served, led, reported, answered = [5] * 7
    forgotten_at_once = 1
    assert len(turns) == decided + configured + forgotten_at_once + adopted + served + led + reported + answered


def test_topics_are_deleted_in_turns(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [f"t{number}" for number in range(5)]
    for name in few:
        broker.create(name)
    turns = turns_of_entries(broker, monkeypatch)
    broker.ask(20, 6, topics=[{"name": name} for name in few])
    found, configured, looked_at, closed, forgotten, answered = [5] * 6
    marked_at_once = forgotten_at_once = 1
    once = marked_at_once + forgotten_at_once
    assert len(turns) == found + configured + looked_at + closed + forgotten + answered + once


@pytest.mark.parametrize("api", LARGE)
def test_a_large_request_leaves_the_garbage_collector_nothing(broker: InProcessBroker, api: str) -> None:
    """What holds itself is not freed by the time of its answer: the collector walks it, on the loop."""
    api_key, api_version, facts = LARGE[api]
    broker.ask(api_key, api_version, **facts)
    gc.collect()
    gc.disable()
    try:
        broker.ask(api_key, api_version, **facts)
        assert gc.collect() < COUNT / 10
    finally:
        gc.enable()


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
    last = {index % 7: index for index in range(COUNT)}
    assert committed(broker, "t", range(7)) == [last[index] for index in range(7)]


def test_offsets_of_many_partitions_are_deleted_in_several_batches(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_delete, "_PARTITIONS_AT_A_TIME", 3)
    broker.create("t", 7)
    commit(broker, "t", range(7))
    log = broker.parts.partitions.get("__consumer_offsets", 0).log
    append = Mock(wraps=log.append)
    monkeypatch.setattr(log, "append", append)
    assert delete(broker, "t", range(8)) == [0] * 7 + [3]
    assert append.call_count == 3
    assert committed(broker, "t", range(7)) == [-1] * 7


def test_a_group_that_ends_with_its_last_offset_is_not_missed_by_the_batches_after(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_delete, "_PARTITIONS_AT_A_TIME", 3)
    broker.create("t", 7)
    commit(broker, "t", [0])
    assert delete(broker, "held", [0]) == [0]
    assert delete(broker, "t", range(7)) == [0] * 7
    assert broker.ask(OFFSET_DELETE, 0, group_id="g", topics=[]).error_code == GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("count", [0, 7])
def test_a_group_that_never_was_is_missed(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(offset_delete, "_PARTITIONS_AT_A_TIME", 3)
    asked = {"name": "none", "partitions": [{"partition_index": index} for index in range(count)]}
    answer = broker.ask(OFFSET_DELETE, 0, group_id="other", topics=[asked])
    assert (answer.error_code, answer.topics) == (GROUP_ID_NOT_FOUND, ())


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


@pytest.fixture
def waiting(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A fetch of seven partitions, which are many, and in which there is nothing to be read."""
    for module in (fetch, fetch_sessions):
        monkeypatch.setattr(module, "PARTITIONS_AT_A_TIME", 3)
    broker.create("t", 7)
    asked = {"current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
    topic = {"topic": "t", "partitions": [{"partition": index, **asked} for index in range(7)]}
    return {"min_bytes": 1, "max_bytes": 1000, "session_epoch": 0, "topics": [topic]}


def parked(broker: InProcessBroker) -> int:
    return sum(len(broker.parts.partitions.get("t", index)._readers) for index in range(7))


def test_a_fetch_of_many_partitions_is_parked_in_turns(
    broker: InProcessBroker, waiting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = turns_of_entries(broker, monkeypatch)
    [fetched] = broker.ask(FETCH, 12, **waiting, max_wait=1).responses
    assert [one.error_code for one in fetched.partitions] == [0] * 7
    gathered, read, waited, read_again, counted, told, added = [7] * 7
    assert len(turns) == gathered + read + waited + read_again + counted + told + added
    assert not parked(broker)


def test_a_fetch_that_ends_while_it_is_being_parked_leaves_nothing_behind(
    broker: InProcessBroker, waiting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns_of_entries(broker, monkeypatch)
    fetching = broker.begin(FETCH, 12, **waiting, max_wait=100_000)
    while not parked(broker):
        broker.turn()
    assert parked(broker) < 7
    fetching.cancel()
    broker.run_until(fetching.done)
    assert not parked(broker)


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
