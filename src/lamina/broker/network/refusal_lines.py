"""Log lines about what happens again and again: one at once, then at most one a second that counts the rest.

Owns the pace. Time is an argument, in seconds. Must not know what is refused.
"""

import logging

_SECONDS_BETWEEN = 1.0


class RefusalLines:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._said_at: float | None = None
        self._unsaid = 0

    def say(self, sentence: str, now: float) -> None:
        if self._said_at is not None and now - self._said_at < _SECONDS_BETWEEN:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        self._said_at, self._unsaid = now, 0
        self._logger.warning("%s%s", sentence, more)
