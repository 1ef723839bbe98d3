"""One line on a terminal that says how far a command is.

Elsewhere than on a terminal nothing is shown. Must not know any command.
"""

import sys
import time
from collections.abc import Callable

_EVERY_SECONDS = 0.2


class Progress:
    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._next = 0.0

    def show(self, text: Callable[[], str]) -> None:
        """Often called, seldom shown."""
        if not self._is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        sys.stderr.write(f"\r\x1b[K{text()}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown and self._next:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._next = 0.0
