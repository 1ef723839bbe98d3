"""Ctrl-C and SIGTERM for commands that have something to finish and to report before they end.

The first only raises a flag, which the command looks at; a second one ends the command where it stands. Must not know
any command.
"""

import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether somebody wants the command to end."""

    def __init__(self, *also: signal.Signals) -> None:
        """``also`` are signals that this command takes for the same wish."""
        self._is_wanted = False
        self._signals = (*_SIGNALS, *also)
        self._before: dict[signal.Signals, object] = {}

    def __call__(self) -> bool:
        return self._is_wanted

    def __enter__(self) -> "Interruption":
        for number in self._signals:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._is_wanted = True
        for number in self._signals:
            signal.signal(number, signal.default_int_handler)
