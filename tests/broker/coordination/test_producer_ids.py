import asyncio
import threading
from types import SimpleNamespace
from typing import cast

import pytest

from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.threads import Threads
from lamina.clocks import SYSTEM_CLOCKS
from lamina.errors import CoordinatorLoadInProgress
from lamina.store.interface import StoreError
from lamina.store.producer_ids import BLOCK_SIZE, ProducerIds
from lamina.store.sqlite import SqliteStore
from tests.store.processes import temporary_store


class CountedIds(ProducerIds):
    """Waits before each block until it is let go, and fails the first so many times."""

    def __init__(self, store: SqliteStore, failures: int = 0) -> None:
        super().__init__(store)
        self.go = threading.Event()
        self.taken = 0
        self.failures = failures

    def next_block(self, at_least: int = 0) -> range:
        self.go.wait()
        self.taken += 1
        if self.taken <= self.failures:
            raise StoreError("the disk is full")
        return super().next_block(at_least)


async def waiting_for(block: ProducerIdBlock, count: int) -> "list[asyncio.Task[int]]":
    tasks = [asyncio.create_task(block.next()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_all_who_wait_share_one_block() -> None:
    async def ask(ids: CountedIds) -> list[int]:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        tasks = await waiting_for(ProducerIdBlock(ids, threads), 50)
        ids.go.set()
        given = await asyncio.gather(*tasks)
        threads.close()
        return given

    with temporary_store() as store:
        ids = CountedIds(store)
        assert asyncio.run(ask(ids)) == list(range(50))
        assert ids.taken == 1


def test_more_than_a_block_can_wait() -> None:
    async def ask(ids: CountedIds) -> list[int]:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        tasks = await waiting_for(ProducerIdBlock(ids, threads), 2 * BLOCK_SIZE + 1)
        ids.go.set()
        given = await asyncio.gather(*tasks)
        threads.close()
        return given

    with temporary_store() as store:
        ids = CountedIds(store)
        assert sorted(asyncio.run(ask(ids))) == list(range(2 * BLOCK_SIZE + 1))
        assert ids.taken == 3


def test_one_who_goes_away_takes_nothing_from_those_who_wait() -> None:
    async def ask(ids: CountedIds) -> list[int]:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        first, *others = await waiting_for(ProducerIdBlock(ids, threads), 3)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        ids.go.set()
        given = await asyncio.gather(*others)
        threads.close()
        return given

    with temporary_store() as store:
        ids = CountedIds(store)
        assert asyncio.run(ask(ids)) == [0, 1]
        assert ids.taken == 1


def test_a_block_that_could_not_be_taken_is_asked_for_again() -> None:
    async def ask(ids: CountedIds) -> tuple[list[int | BaseException], int]:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        block = ProducerIdBlock(ids, threads)
        tasks = await waiting_for(block, 2)
        ids.go.set()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        given = await block.next()
        threads.close()
        return told, given

    with temporary_store() as store:
        told, given = asyncio.run(ask(CountedIds(store, failures=1)))
    assert [type(error) for error in told] == [CoordinatorLoadInProgress] * 2, "clients try again"
    assert "the disk is full" in str(told[0])
    assert given == 0


def test_a_block_that_was_taken_before_lasts_while_the_store_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(ids: CountedIds) -> tuple[list[int], CoordinatorLoadInProgress]:
        threads = Threads(asyncio.get_running_loop(), SYSTEM_CLOCKS)
        block = ProducerIdBlock(ids, threads)
        ids.go.set()
        await block.fill()
        ids.failures = BLOCK_SIZE
        given = [await block.next() for _ in range(BLOCK_SIZE)]
        with pytest.raises(CoordinatorLoadInProgress) as refused:
            await block.next()
        await block.fill()
        threads.close()
        return given, refused.value

    with temporary_store() as store:
        given, refused = asyncio.run(ask(CountedIds(store)))
    assert given == list(range(BLOCK_SIZE))
    assert "the disk is full" in str(refused)
    assert [one.levelname for one in caplog.records] == ["WARNING"], "a start goes on without"


def test_who_comes_when_a_block_is_there_that_nobody_has_taken_yet_takes_it() -> None:
    """Its callbacks have not run then: whoever waited for them without a pause would stop the loop for ever."""

    async def ask() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        refill: asyncio.Future[range] = loop.create_future()
        threads = cast(Threads, SimpleNamespace(run=lambda _work: refill))
        block = ProducerIdBlock(cast(ProducerIds, None), threads)
        (waiting,) = await waiting_for(block, 1)
        refill.set_result(range(7, 9))
        return await block.next(), await waiting

    assert asyncio.run(ask()) == (7, 8)
