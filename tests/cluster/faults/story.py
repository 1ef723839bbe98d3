"""What happened in a test of faults, sentence by sentence with its time, and the files that are kept of it."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lamina.clocks import pause
from tests.cluster.verifiable_producer import monotonic_ms
from tests.history.anomalies import summary
from tests.history.checker import check
from tests.history.events import History
from tests.history.written import write_history

_LOOK_SECONDS = 0.02


class Story:
    """Its times are milliseconds since it began; the first line says when that was by the clock that brokers log by."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is where it is kept, made anew."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.directory = directory
        self._began_ms = monotonic_ms()
        self._histories = 0
        self._file = (directory / "story.txt").open("w", encoding="utf-8", buffering=1)
        self.tell(f"0 ms is {datetime.now(UTC).isoformat(timespec='milliseconds')}")

    def now_ms(self) -> float:
        return monotonic_ms() - self._began_ms

    def tell(self, what: str) -> None:
        """Shown by pytest where the test fails."""
        line = f"{self.now_ms():9.0f} ms  {what}"
        self._file.write(f"{line}\n")
        print(line)

    def within(
        self, seconds: float, what: str, holds: Callable[[], object], seen: Callable[[], object] = lambda: ""
    ) -> float:
        """Wait until it ``holds``; fails with what is ``seen`` in its place. Returns how many seconds it took."""
        began_ms = self.now_ms()
        while not holds():
            took = (self.now_ms() - began_ms) / 1000
            if took > seconds:
                failure = f"{what}: not within {seconds:g} s; instead: {seen()}"
                self.tell(failure)
                raise AssertionError(failure)
            pause(_LOOK_SECONDS)
        took = (self.now_ms() - began_ms) / 1000
        self.tell(f"{what}: after {took:.1f} s of {seconds:g} s")
        return took

    def judge(self, history: History) -> None:
        """Keep it; raises where anything is wrong with it."""
        self._histories += 1
        write_history(history, self.directory / f"history-{self._histories}.jsonl.gz")
        anomalies = check(history)
        self.tell(f"{len(history.sends)} sends, {len(history.moves)} reads, {len(anomalies)} anomalies")
        assert not anomalies, summary(anomalies)

    def keep(self, *files: Path) -> None:
        for file in files:
            if file.exists():
                shutil.copy2(file, self.directory)

    def close(self) -> None:
        self._file.close()
