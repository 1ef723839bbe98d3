"""Sending the lines of some files as records: reading, pacing, and stopping where something is wrong.

Must not know the command line.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable

from lamina.cli.interruption import Interruption
from lamina.cli.outcome import describe
from lamina.cli.printing.progress import ProgressLine
from lamina.cli.printing.text import counted, rate_text
from lamina.cli.produce.input_lines import TooLong, lines_of, open_input
from lamina.cli.record_json import BadRecord, GivenRecord
from lamina.client.errors import ClientError
from lamina.client.pacing import Pacer
from lamina.client.sender import Sender
from lamina.clocks import SYSTEM_CLOCKS, Clocks

STANDARD_INPUT = "-"
_LOOK_EVERY = 256
"""Records between two looks at the clock for the progress line."""


class BadInput(Exception):
    """The input cannot be sent from here on; the sentence names the line."""


class Production:
    def __init__(
        self,
        sender: Sender,
        rate: float | None,
        interruption: Interruption,
        *,
        shows_progress: bool = True,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._clocks = clocks
        self._sender = sender
        self._deliveries = sender.deliveries
        self._interruption = interruption
        self._progress = ProgressLine(is_wanted=shows_progress)
        self._began = self._clocks.monotonic_seconds()
        self._pacer = None if rate is None else Pacer(rate, self._began)
        self._lines = 0
        self._sources: list[tuple[int, str]] = []
        """The number of lines before each source, and its name."""

    @property
    def seconds(self) -> float:
        return self._clocks.monotonic_seconds() - self._began

    @property
    def is_over(self) -> bool:
        return self._interruption() or self._deliveries.failed_number is not None

    def send_files(
        self, names: Iterable[str], parse: Callable[[bytes], GivenRecord | None], max_line_bytes: int, too_long: str
    ) -> None:
        """Raises BadInput, behind everything before the line that is bad."""
        for name in names:
            self._sources.append((self._lines, "standard input" if name == STANDARD_INPUT else name))
            try:
                descriptor = open_input(name)
                try:
                    for lines in lines_of(descriptor, max_line_bytes, lambda: self.is_over, self._idle):
                        self._send_lines(lines, parse)
                finally:
                    os.close(descriptor)
            except TooLong:
                raise BadInput(f"line {self._place(self._lines)} {too_long}") from None
            except OSError as error:
                error.filename = self._sources[-1][1]
                raise BadInput(describe(error)) from error

    def send_records(self, records: Iterable[GivenRecord], name: str) -> None:
        self._sources.append((self._lines, name))
        for record in records:
            if self._send(record):
                return

    def finish(self) -> None:
        """Waits for what is on its way; raises ClientError for the first record that failed."""
        try:
            self._sender.finish(self._show)
        except KeyboardInterrupt:
            self._sender.abandon()
            raise
        finally:
            self._progress.clear()
        number = self._deliveries.failed_number
        if number is not None:
            delivered = counted(self._deliveries.records, "record")
            raise ClientError(
                f"line {self._place(number)} was not delivered: {self._deliveries.failure}; delivered: {delivered}"
            )

    def _send_lines(self, lines: list[bytes], parse: Callable[[bytes], GivenRecord | None]) -> None:
        for line in lines:
            try:
                record = parse(line)
            except BadRecord as error:
                raise BadInput(f"line {self._place(self._lines)}: {error}") from error
            if record is None:
                self._lines += 1
            elif self._send(record):
                return

    def _send(self, record: GivenRecord) -> bool:
        """Whether that was the last."""
        number = self._lines
        if self._pacer is not None:
            while delay := self._pacer.delay(self._clocks.monotonic_seconds()):
                if self._interruption():
                    return True
                self._sender.serve(min(delay, 0.1))
            self._pacer.sent(self._clocks.monotonic_seconds())
        self._sender.send(number, *record)
        self._lines = number + 1
        if not number % _LOOK_EVERY or self._pacer is not None:
            self._show()
            return self.is_over
        return self._deliveries.failed_number is not None

    def _idle(self) -> None:
        self._sender.serve()
        self._show()

    def _show(self) -> None:
        self._progress.show(
            lambda: (
                f"{counted(self._deliveries.records, 'record')} "
                f"({rate_text(self._deliveries.records, self._deliveries.size_bytes, self.seconds)})"
            )
        )

    def _place(self, number: int) -> str:
        """A line as a person counts it, in its file."""
        before, name = self._sources[bisect_right(self._sources, number, key=lambda source: source[0]) - 1]
        return f"{number - before + 1} of {name}"
