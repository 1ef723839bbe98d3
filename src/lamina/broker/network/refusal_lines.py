"""Log lines about what strangers do again and again, so that no stranger fills the log.

Must not know what happened.
"""

import logging

_SECONDS_BETWEEN_LINES = 1.0


class RefusalLines:
    """Log lines about what happens again and again: the first ones at once, then no more for a while, and then one that
    counts the rest."""

    def __init__(
        self, logger: logging.Logger, seconds_between: float = _SECONDS_BETWEEN_LINES, at_a_time: int = 1
    ) -> None:
        self._logger = logger
        self._seconds_between = seconds_between
        self._at_a_time = at_a_time
        self._first_at: float | None = None
        """When the first of those was said that count together."""
        self._said = 0
        self._unsaid = 0

    def say(self, sentence: str, now: float) -> None:
        if self._first_at is None or now - self._first_at >= self._seconds_between:
            self._first_at, self._said = now, 0
        if self._said == self._at_a_time:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        self._said, self._unsaid = self._said + 1, 0
        self._logger.warning("%s%s", sentence, more)
