"""The application without sockets: what goes wrong in a route, and how long it keeps the loop."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.access import Need
from lamina.broker.admin.routes import AdminRoute
from lamina.broker.admin.subject import Subject
from lamina.errors import StorageError
from tests.broker.admin.app_calls import call, subject_of
from tests.broker.in_process import InProcessBroker


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[InProcessBroker]:
    """A broker without sockets; nothing runs on its loop."""
    broker = InProcessBroker(tmp_path, {})
    yield broker
    broker.close()


def test_a_route_that_fails_answers_500_and_is_logged(
    stopped: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_subject: Subject, _request: Request) -> Response:
        raise ZeroDivisionError("secret")

    status, told = asyncio.run(call(subject_of(stopped), "/fail", AdminRoute("GET", "/fail", fail, "")))
    assert (status, told["error"]) == (500, "internal")
    assert "secret" not in told["message"]
    assert "ZeroDivisionError: secret" in caplog.text
    assert stopped.parts.counters.unexpected.total() == 1


def test_a_disk_that_fails_is_no_fault_of_ours(stopped: InProcessBroker, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_subject: Subject, _request: Request) -> Awaitable[Response]:
        raise StorageError("the disk is gone")

    status, told = asyncio.run(call(subject_of(stopped), "/fail", AdminRoute("GET", "/fail", fail, "")))
    assert (status, told) == (503, {"error": "offline", "message": "the disk is gone"})
    assert not caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "broker:9644", "origin": "https://evil.example"}, 403),
        ({"host": "broker:9644", "origin": "null"}, 403),
        ({"host": "broker:9644", "origin": "https://broker:9644"}, 401),
        ({"host": "broker:9644"}, 401),
    ],
)
def test_no_page_of_another_site_changes_anything(
    stopped: InProcessBroker, headers: dict[str, str], status: int
) -> None:
    """A browser that holds an operator's certificate shows it to whoever has it ask."""

    async def change(_subject: Subject, _request: Request) -> Response:
        raise AssertionError("nobody may")

    route = AdminRoute("GET", "/change", change, "", Need.CHANGING)
    answered, told = asyncio.run(call(subject_of(stopped), "/change", route, **headers))
    assert answered == status, told


def test_a_broker_that_still_opens_logs_says_how_far_it_is(stopped: InProcessBroker) -> None:
    stopped.parts.readiness.opened(2, 5)
    status, told = asyncio.run(call(subject_of(stopped), "/readyz"))
    assert (status, told["reasons"]) == (503, ["the broker is recovering, 40 %: 2 of 5 logs are open"])
    assert asyncio.run(call(subject_of(stopped), "/healthz")) == (200, {"status": "alive"})


def test_a_broker_that_stops_is_not_ready(stopped: InProcessBroker) -> None:
    stopped.parts.readiness.is_stopping = True
    status, told = asyncio.run(call(subject_of(stopped), "/readyz"))
    assert (status, told) == (503, {"status": "not_ready", "reasons": ["the broker is stopping"], "warnings": []})


def test_a_disk_that_is_nearly_full_is_a_warning(stopped: InProcessBroker) -> None:
    parts = stopped.parts
    parts.readiness.is_ready = True
    stopped._loop.run_until_complete(parts.upkeep.measure_free_space(1 << 62))
    [path] = parts.directories.free_space
    status, told = stopped._loop.run_until_complete(call(subject_of(stopped), "/readyz"))
    assert (status, told["reasons"]) == (200, [])
    assert told["warnings"][0].startswith(f"the disk of {path} is nearly full: ")
    told = stopped._loop.run_until_complete(call(subject_of(stopped), "/v1/brokers"))[1]
    assert [row["low_log_dirs"] for row in told["brokers"] if row["is_this_broker"]] == [[path]]


def test_a_partition_that_other_brokers_keep_is_told_as_the_metadata_has_it(stopped: InProcessBroker) -> None:
    stopped.create("t")
    stopped.set_partition("t", 0, replicas=(3, 2), leader=2, leader_epoch=9, isr=(2,), adding=(3,))
    told = stopped._loop.run_until_complete(call(subject_of(stopped), "/v1/topics/t/partitions"))[1]["partitions"][0]
    assert (told["leader"], told["replicas"], told["isr"]) == (2, [3, 2], [2])
    assert (told["adding_replicas"], told["removing_replicas"]) == ([3], [])
    assert (told["is_online"], told["failure"]) == (False, "this broker has no replica of t-0")
    topic = stopped._loop.run_until_complete(call(subject_of(stopped), "/v1/topics/t"))[1]
    assert (topic["offline_partitions"], topic["size_bytes"]) == (0, 0)
    status, told = stopped._loop.run_until_complete(call(subject_of(stopped), "/v1/topics/t/partitions/0/segments"))
    assert (status, told["message"]) == (404, "this broker has no replica of t-0")
