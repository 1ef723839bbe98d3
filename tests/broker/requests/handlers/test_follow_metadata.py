"""A broker's report, as the controller's broker takes it in."""

import asyncio
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lamina.broker.metadata.follow_messages import FollowRequest, FollowResponse
from lamina.broker.metadata.reports import Report, encode_report, parse_report
from lamina.broker.requests.handlers import follow_metadata
from lamina.broker.threads import Threads
from lamina.broker.waits import Waits
from lamina.clocks import SYSTEM_CLOCKS
from lamina.controller.election import LogEnd
from lamina.errors import InvalidRequest, NotController
from tests.driven_clock import DrivenClock

NEWS = FollowResponse(1, 1, False, [])


def take(*reports: bytes) -> list[Report]:
    """What the controller hears."""
    heard: list[Report] = []

    async def follow(_broker_id: int, _broker_epoch: int, asked: FollowRequest, _caller: object) -> FollowResponse:
        heard.append(asked.report)
        return NEWS

    async def scenario() -> None:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        member: Any = SimpleNamespace(follow=follow)
        request: Any = SimpleNamespace(api_version=0, client=None, waits=None)
        try:
            for report in reports:
                message = SimpleNamespace(
                    broker_id=1, broker_epoch=5, controller_epoch=1, version=0, max_wait=timedelta(0), report=report
                )
                await follow_metadata.handle(member, threads, SYSTEM_CLOCKS, request, message)
        finally:
            threads.close()

    asyncio.run(scenario())
    return heard


def test_a_poll_that_ends_with_the_tenure_was_waiting_all_the_time() -> None:
    """Else every change of the controller would leave slow requests in the log."""
    clock = DrivenClock()
    clock.monotonic_ms = 1000

    async def follow(_broker_id: int, _broker_epoch: int, _asked: FollowRequest, _caller: object) -> FollowResponse:
        clock.monotonic_ms = 1800
        raise NotController("another one is elected")

    request: Any = SimpleNamespace(api_version=0, client=None, waits=Waits())
    message = SimpleNamespace(
        broker_id=1,
        broker_epoch=5,
        controller_epoch=1,
        version=0,
        max_wait=timedelta(seconds=1),
        report=encode_report(of(0)),
    )
    threads: Any = None
    member: Any = SimpleNamespace(follow=follow)
    with pytest.raises(NotController):
        asyncio.run(follow_metadata.handle(member, threads, clock.clocks, request, message))
    assert request.waits.parked_ns == 800_000_000


def of(count: int) -> Report:
    """After an unclean stop with so many replicas."""
    keys = [("topic", index) for index in range(count)]
    return Report(is_ready=True, made=frozenset(keys), ends={key: LogEnd(1, 2) for key in keys})


def test_a_report_of_many_replicas_is_read_on_the_thread_of_large_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    read_on = []

    def spied(data: bytes) -> Report:
        read_on.append(threading.current_thread())
        return parse_report(data)

    monkeypatch.setattr(follow_metadata, "parse_report", spied)
    reports = [of(1), of(10_000)]
    assert take(*map(encode_report, reports)) == reports
    assert [thread is threading.main_thread() for thread in read_on] == [True, False]


@pytest.mark.parametrize("size_bytes", [1, 100_000])
def test_what_is_no_report_is_refused_however_large(size_bytes: int) -> None:
    with pytest.raises(InvalidRequest, match="a report cannot be read"):
        take(b"[" + b" " * size_bytes)
