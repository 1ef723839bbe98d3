"""How long to wait before something that failed is tried again: hardly at first, then longer each time.

A broker that hears of an election before its new leader does is refused for an instant; one that is refused for minutes
shall not ask a hundred times a second. Must not know what is tried.
"""

FIRST_SECONDS = 0.02


class Backoff:
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
