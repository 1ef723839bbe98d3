"""How far a command is, on a terminal."""

import io
import sys

import pytest

from lamina.cli.printing import progress
from lamina.cli.printing.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def monotonic_seconds(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "SYSTEM_CLOCKS", clock)
    return clock


def test_what_is_over_in_a_moment_shows_no_line(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    line = ProgressLine()
    line.show(lambda: "0 records")
    clock.now += 0.1
    line.show(lambda: "1 record")
    line.clear()
    assert terminal.getvalue() == ""


def test_the_line_is_drawn_now_and_then_and_cleared_once(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    line = ProgressLine()
    for _ in range(4):
        clock.now += 0.125
        line.show(lambda: "some")
    line.clear()
    line.clear()
    assert terminal.getvalue().split("\r\x1b[K") == ["", "some", "some", ""]


def test_elsewhere_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    line = ProgressLine()
    clock.now += 10
    line.show(lambda: "much")
    line.clear()
    assert file.getvalue() == ""
