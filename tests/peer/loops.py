"""An event loop whose clock a test moves on: sockets are real, waiting is not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._skipped_seconds = 0.0

    def time(self) -> float:
        return super().time() + self._skipped_seconds

    def skip(self, seconds: float) -> None:
        """As if that much time had passed: timers that are due by then run in the next turn."""
        self._skipped_seconds += seconds

    async def skip_until(self, task: "asyncio.Future[T]", seconds: float, times: int = 1000) -> T:
        """Skip again and again, until a task that waits for timers alone is done."""
        for _ in range(times):
            if task.done():
                break
            self.skip(seconds)
            await asyncio.sleep(0)
        return await task


def run(scenario: Callable[[SkippingLoop], Awaitable[T]]) -> T:
    """A scenario on a loop of its own, whose clock it is given."""

    async def main() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        return await scenario(loop)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(main())
