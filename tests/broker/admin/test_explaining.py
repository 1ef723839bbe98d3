"""Searching logs for the admin listener: beside clients, few at a time, never for longer than its connection lasts."""

import asyncio
import errno
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.admin.scan_pool import SCANS_AT_ONCE, Scan, ScanPool
from lamina.broker.admin.serving import Serving
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.log.lease import Lease
from lamina.log.segment import Segment
from tests.broker.admin.app_calls import TOKEN, call, subject_of
from tests.broker.cleaner.cleaning import CleaningBroker

BATCHES = 40
EXPLAIN = "/v1/cleaner/explain?topic=t&partition=0"


class Clock:
    """Goes on by a second whenever a scan looks at it, and not otherwise."""

    def __init__(self) -> None:
        self.now_ms = 0

    def look(self) -> int:
        self.now_ms += 1000
        return self.now_ms


def scan_pool(broker: CleaningBroker, monotonic_ms: Callable[[], int]) -> ScanPool:
    """One whose scans go by another clock; its threads do not."""
    pool = ScanPool(broker.parts.loop, SYSTEM_CLOCKS)
    pool._clocks = Clocks(SYSTEM_CLOCKS.wall_ns, lambda: monotonic_ms() * 1_000_000)
    return pool


@pytest.fixture
def searched(tmp_path: Path) -> Iterator[CleaningBroker]:
    """A topic ``t`` of as many batches as a search has no time for, if each takes a second."""
    broker = CleaningBroker(tmp_path, {})
    broker.create("t", cleanup_policy="compact")
    broker.write("t", *(b"k%d=v" % number for number in range(BATCHES)))
    yield broker
    broker.close()


def test_a_search_that_took_all_its_time_still_brings_its_answer(
    searched: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed by the same clock, some time after the search gives up."""
    clock = Clock()
    subject = subject_of(searched, scan_pool(searched, clock.look))
    monkeypatch.setattr(searched.parts.loop, "time", lambda: clock.now_ms / 1000)

    async def ask() -> dict[str, Any]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = Serving(subject, [listener])
            await serving.start()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            clock.now_ms += 14_000  # The connection is idle for as long as it may be.
            head = f"GET {EXPLAIN}&offset=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            writer.write(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            told = await reader.read()
            writer.close()
            await writer.wait_closed()
            await serving.stop()
        [row] = json.loads(told.partition(b"\r\n\r\n")[2])["records"]
        return dict(row)

    row = searched.run(ask())
    subject.scan_pool.close()
    assert row["offset"] == 0
    start, end = row["unsearched"]
    assert 0 < start < end == BATCHES
    assert "the search ended after 15 s" in row["reasons"][0]


def test_searches_and_lists_of_segments_use_none_of_the_threads_that_serve_clients(
    searched: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_work: Callable[[], object]) -> None:
        raise AssertionError("this thread is for clients")

    monkeypatch.setattr(searched.parts.threads, "run", run)
    subject = subject_of(searched)
    for path in (f"{EXPLAIN}&offset=0", "/v1/topics/t/partitions/0/segments", "/v1/logs"):
        assert searched.run(call(subject, path, token=TOKEN))[0] == 200
    subject.scan_pool.close()


def test_more_searches_than_may_run_at_a_time_are_refused(searched: CleaningBroker) -> None:
    may_go_on = threading.Event()
    begun = threading.Semaphore(0)

    def hold() -> int:
        if threading.current_thread() is not threading.main_thread():
            begun.release()
            may_go_on.wait()
        return 0

    subject = subject_of(searched, scan_pool(searched, hold))

    async def ask_too_often() -> tuple[tuple[int, Any], list[tuple[int, Any]], tuple[int, Any]]:
        tasks = [asyncio.create_task(call(subject, f"{EXPLAIN}&offset=0", token=TOKEN)) for _ in range(SCANS_AT_ONCE)]
        for _ in tasks:
            await asyncio.to_thread(begun.acquire)
        refused = await call(subject, f"{EXPLAIN}&offset=0", token=TOKEN)
        # A list of segments does not wait for them.
        assert (await call(subject, "/v1/topics/t/partitions/0/segments"))[0] == 200
        may_go_on.set()
        answered = await asyncio.gather(*tasks)
        return refused, answered, await call(subject, f"{EXPLAIN}&offset=0", token=TOKEN)

    (status, told), answered, later = searched.run(ask_too_often())
    subject.scan_pool.close()
    assert (status, told["error"]) == (503, "busy")
    assert told["message"] == "2 scans of logs are running, and no more may: ask again in 5 s"
    assert [status for status, _ in (*answered, later)] == [200, 200, 200]


def leases_of(broker: CleaningBroker) -> int:
    return sum(segment.leases for segment in broker.partition("t").log.segments)


def test_leases_are_given_back_when_a_later_segment_cannot_be_lent(
    searched: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched.roll("t")
    searched.write("t", b"a=1")
    first, second = searched.partition("t").log.segments
    subject = subject_of(searched)
    with monkeypatch.context() as patch:
        patch.setattr(type(second), "lease", _failing_at(second, type(second).lease))
        status, told = searched.run(call(subject, f"{EXPLAIN}&offset=0", token=TOKEN))
    assert (status, told["error"]) == (503, "offline")
    assert "t-0 cannot open files for now" in told["message"]
    assert (first.leases, second.leases) == (0, 0)
    assert searched.run(call(subject, f"{EXPLAIN}&offset=0", token=TOKEN))[0] == 200
    assert leases_of(searched) == 0
    subject.scan_pool.close()


SEGMENTS = 40


@pytest.fixture
def divided(searched: CleaningBroker) -> CleaningBroker:
    """With many segments more, in each of which one record has the key ``a``."""
    for number in range(SEGMENTS):
        searched.roll("t")
        searched.write("t", b"a=%d" % number)
    return searched


@pytest.mark.parametrize(("wanted", "offset"), [(f"offset={BATCHES}", BATCHES), ("key=k1", 1)])
def test_a_search_holds_few_segments_at_a_time(
    divided: CleaningBroker, monkeypatch: pytest.MonkeyPatch, wanted: str, offset: int
) -> None:
    """Whether it reads all segments from the first on or from the last one back."""
    most, lent = 0, 0
    lend = Segment.lease

    def lease(segment: Segment, position: int, size_bytes: int) -> Lease:
        nonlocal most, lent
        lease = lend(segment, position, size_bytes)
        lent += 1
        most = max(most, leases_of(divided))
        return lease

    monkeypatch.setattr(Segment, "lease", lease)
    subject = subject_of(divided)
    status, told = divided.run(call(subject, f"{EXPLAIN}&{wanted}", token=TOKEN))
    subject.scan_pool.close()
    assert (status, told["records"][0]["offset"]) == (200, offset)
    if wanted.startswith("offset"):
        assert f"a newer record of its key is at offset {BATCHES + 1}" in told["records"][0]["reasons"][0]
    assert lent >= SEGMENTS
    assert most <= 8
    assert leases_of(divided) == 0


def test_segments_that_are_replaced_or_deleted_during_a_search_are_no_trouble(
    divided: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it reads next is taken from the log as it is then."""
    log = divided.partition("t").log
    delete_below: int | None = BATCHES + SEGMENTS // 2
    run = Scan.run

    async def scan(self: Scan, work: Callable[[], Any], done: Callable[[], None]) -> Any:
        nonlocal delete_below
        result = await run(self, work, done)
        while delete_below is not None and log.segments.first.base_offset < delete_below:
            for step in log.delete_oldest(log.segments.first, 0):
                step()
        delete_below = None
        return result

    monkeypatch.setattr(Scan, "run", scan)
    subject = subject_of(divided)
    status, told = divided.run(call(subject, f"{EXPLAIN}&offset={BATCHES}", token=TOKEN))
    assert (status, told["records"][0]["offset"]) == (200, BATCHES)
    delete_below = BATCHES + SEGMENTS - 1
    assert divided.run(call(subject, f"{EXPLAIN}&key=k1", token=TOKEN))[0] == 404
    subject.scan_pool.close()
    assert leases_of(divided) == 0


def _failing_at(broken: object, lease: Callable[..., Any]) -> Callable[..., Any]:
    def lend(segment: object, *args: int) -> Any:
        if segment is broken:
            raise OSError(errno.EMFILE, "too many open files")
        return lease(segment, *args)

    return lend


def test_a_search_that_nobody_waits_for_keeps_its_leases_until_its_thread_ends(searched: CleaningBroker) -> None:
    """The stop of the broker cancels requests; threads cannot be cancelled, and must not read a closed file."""
    reads = threading.Event()
    may_go_on = threading.Event()

    def hold() -> int:
        if threading.current_thread() is not threading.main_thread():
            reads.set()
            may_go_on.wait()
        return 0

    subject = subject_of(searched, scan_pool(searched, hold))

    async def cancel_one() -> int:
        task = asyncio.create_task(call(subject, f"{EXPLAIN}&offset=0", token=TOKEN))
        await asyncio.to_thread(reads.wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return leases_of(searched)

    assert searched.run(cancel_one()) == 1
    may_go_on.set()
    subject.scan_pool.close()
    searched.run_until(lambda: leases_of(searched) == 0)
