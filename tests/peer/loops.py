"""An event loop whose clock a test moves on: sockets are real, waiting is not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_SECONDS = 0.02
"""Many turns fit in any time limit, so that what sockets of this loop have to say is heard in time."""


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._skipped_seconds = 0.0

    def time(self) -> float:
        return super().time() + self._skipped_seconds

    def skip(self, seconds: float) -> None:
        """As if that much time had passed: timers that are due by then run in the next turn."""
        self._skipped_seconds += seconds

    async def skip_until(self, task: "asyncio.Future[T]") -> T:
        """Skip a little each turn, until a task that waits for timers, and for nobody but this loop, is done."""
        while not task.done():
            self.skip(_STEP_SECONDS)
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
