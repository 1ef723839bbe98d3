"""How long to wait before something that failed is tried again: longer each time, up to a limit.

A broker that hears of an election before its new leader does is refused for an instant; one that is refused for minutes
must not ask a hundred times a second. Must not know what is tried.
"""

import asyncio
from contextlib import suppress

FIRST_SECONDS = 0.02
_MOST_DOUBLINGS = 30
"""What has failed for days must not make a number of a thousand digits."""


def doubled_ms(first_ms: int, failures: int, longest_ms: int) -> int:
    """What to wait after so many failures in a row, of which there was one at least."""
    return min(first_ms << min(failures - 1, _MOST_DOUBLINGS), longest_ms)


class Backoff:
    """Hardly any time at first."""

    def __init__(self, longest_seconds: float) -> None:
        self._longest_seconds = longest_seconds
        self._next_seconds = FIRST_SECONDS
        self.is_longest = False
        """Whether the last wait could not have been longer."""

    def failed(self) -> float:
        """The seconds to wait now; twice as many the next time."""
        seconds = min(self._next_seconds, self._longest_seconds)
        self._next_seconds = min(2 * seconds, self._longest_seconds)
        self.is_longest = seconds == self._longest_seconds
        return seconds

    def succeeded(self) -> None:
        self._next_seconds = FIRST_SECONDS
        self.is_longest = False


class RetryWait(Backoff):
    """Waits out what is to be waited, unless somebody says that what was in vain may succeed."""

    def __init__(self, longest_seconds: float) -> None:
        super().__init__(longest_seconds)
        self._retry = asyncio.Event()

    async def wait(self) -> None:
        """After another failure."""
        self._retry.clear()
        # Not `wait_for`: in Python 3.11 it forgets a cancellation that comes together with what it waits for.
        with suppress(TimeoutError):
            async with asyncio.timeout(self.failed()):
                await self._retry.wait()

    def retry_now(self) -> None:
        self._retry.set()
