"""The virtual loop: time, order, and what becomes of processes that are killed or paused."""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from tests.simulation.executor import SimulatedExecutor
from tests.simulation.loop import Stuck, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    virtual = VirtualLoop(Random(1))
    yield virtual
    virtual.close()


def test_an_hour_passes_in_no_time(loop: VirtualLoop) -> None:
    loop.run(asyncio.sleep(3600), limit_s=4000)
    assert 3600 <= loop.time() < 3601


def test_who_waits_for_what_cannot_happen_is_told(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await loop.create_future()

    with pytest.raises(Stuck, match="nothing can happen"):
        loop.run(wait())


def test_who_is_busy_for_ever_is_stopped(loop: VirtualLoop) -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="more than 1 s"):
        loop.run(spin(), limit_s=1)


def test_callbacks_of_one_process_run_in_order_and_those_of_several_in_any() -> None:
    def order(seed: int) -> list[str]:
        virtual, ran = VirtualLoop(Random(seed)), list[str]()

        async def world() -> None:
            processes = [virtual.new_process(name) for name in "ab"]
            for number in range(5):
                for process in processes:
                    virtual.call_in(process, ran.append, f"{process.name}{number}")
            await asyncio.sleep(1)

        virtual.run(world())
        virtual.close()
        return ran

    orders = [order(seed) for seed in range(10)]
    for ran in orders:
        assert [one for one in ran if one[0] == "a"] == [f"a{number}" for number in range(5)]
    assert len({tuple(ran) for ran in orders}) > 5
    assert order(3) == order(3)


def test_a_killed_process_is_not_unwound(loop: VirtualLoop) -> None:
    told: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            told.append("went on")
        finally:
            told.append("tidied up")

    async def world() -> list[str]:
        process = loop.new_process("a")
        loop.spawn(process, work())
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)
        return list(told)

    assert loop.run(world()) == []


def test_a_paused_process_finds_that_time_went_on(loop: VirtualLoop) -> None:
    async def wake() -> float:
        await asyncio.sleep(1)
        return loop.time()

    async def world() -> float:
        process = loop.new_process("a")
        task = loop.spawn(process, wake())
        await asyncio.sleep(0.5)
        loop.pause(process)
        await asyncio.sleep(10)
        loop.resume(process)
        return await task

    assert loop.run(world()) == pytest.approx(10.5, abs=0.01)


def test_work_of_threads_happens_later_and_that_of_the_killed_never(loop: VirtualLoop) -> None:
    done: list[str] = []

    async def submit(what: str) -> None:
        executor = SimulatedExecutor(loop, Random(1), 1)
        future = executor.submit(done.append, what)
        assert not done
        await asyncio.wrap_future(future, loop=loop)

    async def world() -> None:
        await submit("first")
        process = loop.new_process("a")
        loop.spawn(process, submit("second"))
        loop.kill(process)
        await asyncio.sleep(1)

    loop.run(world())
    assert done == ["first"]


def test_an_executor_finishes_what_has_begun_when_it_ends_and_cancels_the_rest(loop: VirtualLoop) -> None:
    done: list[int] = []

    async def world() -> None:
        executor = SimulatedExecutor(loop, Random(1), 1)
        futures = [executor.submit(done.append, number) for number in range(3)]
        executor.shutdown(cancel_futures=True)
        assert [future.cancelled() for future in futures] == [False, True, True]

    loop.run(world())
    assert done == [0]
