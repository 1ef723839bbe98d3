"""Log lines about what strangers do again and again, so that no stranger fills the log.

Must not know what happened.
"""

import logging

_SECONDS_BETWEEN_LINES = 1.0


class RefusalLines:
    """Log lines about what happens again and again: one at once, then at most one in a while that counts the rest."""

    def __init__(self, logger: logging.Logger, seconds_between: float = _SECONDS_BETWEEN_LINES) -> None:
        self._logger = logger
        self._seconds_between = seconds_between
        self._said_at: float | None = None
        self._unsaid = 0

    def say(self, sentence: str, now: float) -> None:
        if self._said_at is not None and now - self._said_at < self._seconds_between:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        self._said_at, self._unsaid = now, 0
        self._logger.warning("%s%s", sentence, more)
