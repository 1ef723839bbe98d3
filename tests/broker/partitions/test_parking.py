"""A fetch that finds too little waits; what comes between its look and its wait must not be missed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.requests.fetch_sessions import FINAL_EPOCH
from lamina.broker.requests.handlers import fetch
from lamina.broker.requests.request import Request, Response
from lamina.wire.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.broker.in_process import InProcessBroker, NoSocket, batch_of, joined

FOR_EVER_MS = 2**31 - 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {})
    opened.create("t")
    yield opened
    opened.close()


def fetch_from(broker: InProcessBroker, min_bytes: int = 1) -> "asyncio.Future[Response]":
    """A long poll that has looked and found nothing, and whose task has not run yet."""
    asked = FetchTopic("t", None, [FetchPartition(0, -1, 0, -1, -1, 1000)])
    message = FetchRequest(-1, -1, FOR_EVER_MS, min_bytes, 1000, 0, 0, FINAL_EPOCH, [asked], [], "")
    request = Request(fetch.API.key, 12, 1, None, NoSocket(), RequestCounters("Fetch", 12))
    waiting = broker.fetch(request, message)
    assert asyncio.iscoroutine(waiting)
    return asyncio.ensure_future(waiting, loop=broker.parts.loop)


def soon(broker: InProcessBroker, waiting: "asyncio.Future[Response]") -> Response:
    """The answer, or a failed test long before the poll would end by itself."""
    return broker.parts.loop.run_until_complete(asyncio.wait_for(waiting, 10))


def test_a_record_that_comes_before_the_fetch_is_parked_is_answered(broker: InProcessBroker) -> None:
    waiting = fetch_from(broker)
    broker.produce("t", 1)
    assert b"value" in joined(soon(broker, waiting))


def is_answered(broker: InProcessBroker, waiting: "asyncio.Future[Response]") -> bool:
    """Whether it is, once all who can do something have done it."""
    for _ in range(10):
        broker.turn()
    return waiting.done()


@pytest.mark.parametrize("parks_first", [True, False])
def test_too_little_is_waited_on_whenever_it_comes_and_counts(broker: InProcessBroker, parks_first: bool) -> None:
    broker.produce("t", 1)
    size_bytes = broker.parts.partitions.get("t", 0).log.segments.active.size_bytes
    waiting = fetch_from(broker, min_bytes=3 * size_bytes)
    if parks_first:
        broker.turn()
    broker.parts.partitions.get("t", 0).append_own(bytearray(batch_of(broker, 1)), broker.clock.clocks.now_ms())
    assert not is_answered(broker, waiting)
    broker.produce("t", 1)
    assert joined(soon(broker, waiting)).count(b"value") == 3


@pytest.mark.parametrize("parks_first", [True, False])
def test_the_end_of_a_transaction_answers_nobody_who_reads_all_records(
    broker: InProcessBroker, parks_first: bool
) -> None:
    waiting = fetch_from(broker, min_bytes=1000)
    if parks_first:
        broker.turn()
    partition = broker.parts.partitions.get("t", 0)
    partition.append_marker(1, 0, 0, is_commit=True, transaction_version=1, now_ms=broker.clock.clocks.now_ms())
    assert not is_answered(broker, waiting)
    partition.release_all()
    assert soon(broker, waiting) is not None


@pytest.mark.parametrize("parks_first", [True, False])
def test_a_partition_without_a_leader_is_not_waited_for(broker: InProcessBroker, parks_first: bool) -> None:
    waiting = fetch_from(broker)
    if parks_first:
        broker.turn()
    broker.parts.partitions.get("t", 0).resign()
    assert soon(broker, waiting) is not None


def test_a_partition_that_goes_before_the_fetch_is_parked_is_not_waited_for(broker: InProcessBroker) -> None:
    waiting = fetch_from(broker)
    partition = broker.parts.partitions.get("t", 0)
    partition.release_all()
    partition.log.take_offline("gone")
    assert soon(broker, waiting) is not None


def test_a_broker_that_stops_before_the_fetch_is_parked_answers_it(broker: InProcessBroker) -> None:
    waiting = fetch_from(broker)
    broker.parts.loop.run_until_complete(broker.parts.partitions.release_all(broker.parts.clocks))
    assert soon(broker, waiting) is not None


def test_a_fetch_that_is_cancelled_before_its_task_begins_holds_no_file(broker: InProcessBroker) -> None:
    broker.produce("t", 1)
    waiting = fetch_from(broker, min_bytes=1_000_000)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        soon(broker, waiting)
    assert broker.parts.partitions.get("t", 0).log.segments.active.leases == 0
