"""Slow requests are told and remembered, followed ones are logged; no sockets, no clock."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.requests.request import Client, Request
from lamina.broker.requests.request_watch import MAX_FOLLOWED, REMEMBERED, FollowError, RequestWatch
from lamina.broker.waits import Waits
from tests.driven_clock import DrivenClock

MS = 1_000_000


def request(
    *, arriving: int = 0, queued: int = 0, elapsed: int = 0, parked: int = 0, threads: int = 0, client_id: str = "app"
) -> Request:
    """A request whose answer was ready after these milliseconds."""
    connection = cast(Client, SimpleNamespace(id=7, peer="10.0.0.1:4242"))
    made = Request(0, 9, 42, client_id, connection, RequestCounters("Produce", 9))
    made.size_bytes = 1000
    made.arrived_ns = 0
    made.received_ns = arriving * MS
    made.began_ns = made.received_ns + queued * MS
    made.ended_ns = made.began_ns + elapsed * MS
    if parked or threads:
        made.waits = Waits()
        made.waits.parked_ns, made.waits.threads_ns = parked * MS, threads * MS
    return made


@pytest.fixture
def clock() -> DrivenClock:
    driven = DrivenClock()
    driven.monotonic_ms = 100_000
    return driven


@pytest.fixture
def watch(clock: DrivenClock, caplog: pytest.LogCaptureFixture) -> RequestWatch:
    caplog.set_level(logging.INFO)
    return RequestWatch(100, clock.clocks)


def sent(made: Request, after_ms: float = 0) -> int:
    return made.ended_ns + int(after_ms * MS)


def seconds_of(made: Request, part: str) -> float:
    return made.counters.histogram(part).sum_ns / MS / 1000


def test_a_slow_request_is_told_in_one_line_with_its_parts(
    watch: RequestWatch, caplog: pytest.LogCaptureFixture
) -> None:
    slow = request(arriving=10, queued=20, elapsed=170, parked=50, threads=80)
    slow.failed(2)
    watch.answered([slow], sent(slow, 5))
    (line,) = caplog.messages
    assert line == (
        "slow request: Produce version 9 of 10.0.0.1:4242 (connection 7, client id 'app'), correlation id 42, "
        "1000 bytes, CORRUPT_MESSAGE: 155 ms = arriving 10 + queued 20 + handling 40 + threads 80 + sending 5; "
        "waiting 50"
    )
    (remembered,) = watch.slow_requests
    assert (remembered.api, remembered.total_ms, remembered.waiting_ms) == ("Produce", 155, 50)
    assert watch.slow_total == 1


def test_the_parts_of_a_request_are_counted_apart(watch: RequestWatch) -> None:
    made = request(arriving=10, queued=20, elapsed=170, parked=50, threads=80)
    watch.answered([made], sent(made, 5))
    parts = {part: seconds_of(made, part) for part in ("arrival", "queue", "local", "threads", "remote", "send")}
    assert parts == {
        "arrival": 0.010,
        "queue": 0.020,
        "local": 0.040,
        "threads": 0.080,
        "remote": 0.050,
        "send": 0.005,
    }
    assert seconds_of(made, "duration") == 0.195
    assert made.counters.requests == 1


def test_quick_requests_are_in_the_first_bucket_of_every_time(watch: RequestWatch) -> None:
    made = request()
    made.ended_ns = 20_000
    watch.answered([made, made], 30_000)
    for part in ("duration", "arrival", "queue", "local", "threads", "remote", "send"):
        histogram = made.counters.histogram(part)
        assert histogram.counts[0] == sum(histogram.counts) == made.counters.requests == 2
    assert made.counters.local_ns == 40_000
    assert made.counters.send_ns == 20_000


def test_what_a_request_did_not_wait_for_counts_as_no_time_at_all(watch: RequestWatch) -> None:
    made = request(elapsed=3)
    watch.answered([made], sent(made))
    assert made.counters.histogram("remote").counts[0] == 1
    assert made.counters.histogram("local").counts[0] == 0


def test_a_fetch_that_waits_as_its_client_wished_is_not_slow(
    watch: RequestWatch, caplog: pytest.LogCaptureFixture
) -> None:
    parked = request(elapsed=30_050, parked=30_000)
    watch.answered([parked], sent(parked))
    assert not caplog.messages
    assert not watch.slow_requests


def test_what_threads_did_at_the_same_time_is_not_counted_twice(watch: RequestWatch) -> None:
    made = request(elapsed=50, threads=120)
    watch.answered([made], sent(made))
    assert seconds_of(made, "threads") == 0.050
    assert seconds_of(made, "local") == 0


def test_the_limit_can_change_and_be_taken_away(watch: RequestWatch, caplog: pytest.LogCaptureFixture) -> None:
    made = request(elapsed=5000)
    watch.configure(-1)
    watch.answered([made], sent(made))
    assert not caplog.messages
    watch.configure(5000)
    watch.answered([made], sent(made))
    assert len(caplog.messages) == 1
    watch.configure(5001)
    watch.answered([made], sent(made))
    assert len(caplog.messages) == 1


def test_many_slow_requests_get_few_lines_and_the_last_ones_are_remembered(
    watch: RequestWatch, clock: DrivenClock, caplog: pytest.LogCaptureFixture
) -> None:
    made = request(elapsed=200)
    for _ in range(REMEMBERED + 50):
        watch.answered([made], sent(made))
    assert len(caplog.messages) == 10
    assert len(watch.slow_requests) == REMEMBERED
    assert watch.slow_total == REMEMBERED + 50
    clock.monotonic_ms = 101_000
    watch.answered([made], sent(made))
    assert caplog.messages[10] == f"{REMEMBERED + 40} more slow requests had no line"
    assert len(caplog.messages) == 12


def test_a_client_cannot_fill_the_log_with_its_name(watch: RequestWatch) -> None:
    made = request(elapsed=200, client_id="x" * 30_000)
    watch.answered([made], sent(made))
    assert watch.slow_requests[0].client_id == "x" * 80


@pytest.mark.parametrize("who", ["7", "10.0.0.1:4242", "app"])
def test_each_request_of_a_followed_connection_is_logged(
    watch: RequestWatch, caplog: pytest.LogCaptureFixture, who: str
) -> None:
    watch.follow(who)
    made: Any = request(elapsed=2)
    watch.answered([made, made], sent(made))
    assert (
        caplog.messages
        == [
            "followed: connection 7 of 10.0.0.1:4242, client id 'app': Produce version 9, correlation id 42, "
            "1000 bytes: NONE after 2 ms"
        ]
        * 2
    )
    assert watch.unfollow(who)
    assert not watch.unfollow(who)
    watch.answered([made], sent(made))
    assert len(caplog.messages) == 2


def test_others_are_not_logged(watch: RequestWatch, caplog: pytest.LogCaptureFixture) -> None:
    watch.follow("another")
    made = request(elapsed=2)
    watch.answered([made], sent(made))
    assert not caplog.messages


def test_only_so_many_can_be_followed_at_once(watch: RequestWatch) -> None:
    for number in range(MAX_FOLLOWED):
        watch.follow(f"client-{number}")
    watch.follow("client-0")
    with pytest.raises(FollowError, match="unfollow one"):
        watch.follow("one more")
    assert len(watch.followed) == MAX_FOLLOWED
    with pytest.raises(FollowError, match="say whom"):
        watch.follow("")
