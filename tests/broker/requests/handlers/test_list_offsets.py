import threading
from typing import Any

import pytest

from lamina.broker.requests.handlers import list_offsets
from lamina.errors import ErrorCode
from lamina.image.image import Image
from lamina.log import lookup
from lamina.records.record import iterate_records
from lamina.wire.api_keys import LIST_OFFSETS
from tests.broker.in_process import InProcessBroker

VERSION = 11


def ask(broker: InProcessBroker, *asked: tuple[int, int], topic: str = "t") -> list[tuple[int, int]]:
    """Error code and offset for every (partition, timestamp)."""
    partitions = [
        {"partition_index": index, "current_leader_epoch": -1, "timestamp": timestamp} for index, timestamp in asked
    ]
    response = broker.ask(LIST_OFFSETS, VERSION, topics=[{"name": topic, "partitions": partitions}])
    return [(one.error_code, one.offset) for one in response.topics[0].partitions]


@pytest.fixture
def decoded_on_loop(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every batch that is opened whether the loop's thread does it."""
    found: list[bool] = []

    def watch(*given: Any) -> Any:
        found.append(threading.current_thread() is threading.main_thread())
        return iterate_records(*given)

    monkeypatch.setattr(lookup, "iterate_records", watch)
    return found


def test_ends_and_times_are_answered_in_order_and_no_batch_is_opened_on_the_loop(
    broker: InProcessBroker, decoded_on_loop: list[bool]
) -> None:
    broker.create("t", 5)
    for index in range(5):
        broker.produce("t", index + 1, index)
    asked = ((0, -1), (1, 0), (2, -2), (3, -3), (4, 2**62), (9, 0))
    none, unknown = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(broker, *asked) == [(none, 1), (none, 0), (none, 0), (none, 0), (none, -1), (unknown, -1)]
    assert decoded_on_loop == [False, False]


def test_the_ends_of_a_log_are_answered_without_a_turn_of_the_loop(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t")
    broker.produce("t", 3)
    monkeypatch.setattr(list_offsets, "_handle_in_turns", None)
    for timestamp, offset in ((-1, 3), (-2, 0), (-4, 0), (-5, -1), (-6, -1)):
        assert ask(broker, (0, timestamp)) == [(ErrorCode.NONE, offset)]


@pytest.mark.parametrize("timestamp", [-1, 0])
def test_a_partition_that_is_asked_for_twice_is_refused_each_time(
    broker: InProcessBroker, decoded_on_loop: list[bool], timestamp: int
) -> None:
    broker.create("t", 2)
    broker.produce("t", 1)
    refused = (ErrorCode.INVALID_REQUEST, -1)
    answers = ask(broker, (0, timestamp), (1, -1), (0, -2))
    assert answers == [refused, (ErrorCode.NONE, 0), refused]
    assert decoded_on_loop == []


def test_a_partition_that_goes_away_during_a_lookup_is_unknown_and_no_disk_error(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t")
    broker.produce("t", 1)
    partition = broker.parts.partitions.get("t", 0)

    def remove(*given: Any) -> Any:
        broker.parts.partitions.remove("t", 0)
        broker.parts.partitions.cluster.image = Image("")
        return iterate_records(*given)

    monkeypatch.setattr(lookup, "iterate_records", remove)
    assert ask(broker, (0, 0)) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert partition.log.failure is None
    assert partition.log.segments.first.leases == 0
    broker.parts.partitions.add(partition)


def test_a_lookup_that_fails_unexpectedly_is_told_and_leaves_no_lease(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t")
    broker.produce("t", 1)

    def fail(*_given: Any) -> Any:
        raise RuntimeError("a test")

    monkeypatch.setattr(lookup, "iterate_records", fail)
    assert ask(broker, (0, 0)) == [(ErrorCode.UNKNOWN_SERVER_ERROR, -1)]
    assert broker.parts.counters.unexpected.total() == 1
    assert broker.parts.partitions.get("t", 0).log.segments.first.leases == 0


@pytest.mark.parametrize(("timestamp", "first_version"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_timestamp_has_no_meaning_below_its_version(
    broker: InProcessBroker, timestamp: int, first_version: int
) -> None:
    broker.create("t")
    for version in list_offsets.API.versions:
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        [answer] = broker.ask(LIST_OFFSETS, version, topics=topics).topics[0].partitions
        assert answer.error_code == (ErrorCode.NONE if version >= first_version else ErrorCode.UNSUPPORTED_VERSION)


def test_a_negative_timestamp_without_a_meaning_is_no_time(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.produce("t", 1)
    assert ask(broker, (0, -7)) == [(ErrorCode.UNSUPPORTED_VERSION, -1)]


@pytest.mark.parametrize("timestamp", [-2, -4])
def test_the_start_of_an_empty_partition_is_in_its_leaders_epoch(broker: InProcessBroker, timestamp: int) -> None:
    broker.create("t")
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
    [answer] = broker.ask(LIST_OFFSETS, VERSION, topics=topics).topics[0].partitions
    assert (answer.offset, answer.leader_epoch) == (0, 0)
