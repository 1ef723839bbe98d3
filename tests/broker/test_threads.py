import asyncio
import sys
import threading

import pytest

from lamina.broker.threads import Threads, giving_way
from lamina.clocks import SYSTEM_CLOCKS


def test_who_gives_way_last_restores_what_was_usual() -> None:
    usual = sys.getswitchinterval()
    first, second = giving_way(), giving_way()
    first.__enter__()
    short = sys.getswitchinterval()
    assert short < usual
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == short
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == usual


def test_who_is_cancelled_learns_it_when_the_thread_has_ended() -> None:
    begun, may_end = threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        begun.set()
        may_end.wait(30)
        ended.append("the work")

    async def ask(threads: Threads) -> None:
        try:
            await threads.run_to_its_end(work)
        finally:
            ended.append("who asked")

    async def live() -> None:
        loop = asyncio.get_running_loop()
        threads = Threads(loop, SYSTEM_CLOCKS)
        asking = loop.create_task(ask(threads))
        await loop.run_in_executor(None, begun.wait, 30)
        for _ in range(2):
            asking.cancel()
            for _ in range(10):  # More turns than it takes to hear of that.
                await asyncio.sleep(0)
        assert not ended
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        threads.close()

    asyncio.run(live())
    assert ended == ["the work", "who asked"]
