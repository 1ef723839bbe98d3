"""How far a command is, on a terminal."""

import io
import sys

import pytest

from lamina.cli.printing.progress import ProgressLine
from tests.driven_clock import DrivenClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_over_in_a_moment_shows_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DrivenClock()
    clock.monotonic_ms = now_ms = 100_000
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    line = ProgressLine(clocks=clock.clocks)
    line.show(lambda: "0 records")
    clock.monotonic_ms = now_ms + 100
    line.show(lambda: "1 record")
    line.clear()
    assert terminal.getvalue() == ""


def test_the_line_is_drawn_now_and_then_and_cleared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DrivenClock()
    clock.monotonic_ms = now_ms = 100_000
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    line = ProgressLine(clocks=clock.clocks)
    for _ in range(4):
        clock.monotonic_ms = now_ms = now_ms + 125
        line.show(lambda: "some")
    line.clear()
    line.clear()
    assert terminal.getvalue().split("\r\x1b[K") == ["", "some", "some", ""]


def test_elsewhere_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DrivenClock()
    clock.monotonic_ms = now_ms = 100_000
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    line = ProgressLine(clocks=clock.clocks)
    clock.monotonic_ms = now_ms + 10_000
    line.show(lambda: "much")
    line.clear()
    assert file.getvalue() == ""
