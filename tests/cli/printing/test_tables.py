"""Tables: whole in a pipe, folded only where they then fit a terminal."""

import io
import sys

import pytest

from lamina.cli.printing.tables import print_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_every_character_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_table(("a", "long"), [("1", "x" * 1000), ("22", "y")]) == 2
    assert capsys.readouterr().out == f"a   long\n1   {'x' * 1000}\n22  y\n"


def test_no_rows_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_table(("a",), []) == 0
    assert capsys.readouterr().out == ""


def test_many_rows_are_printed_page_by_page_under_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_table(("number",), ((str(number),) for number in range(1201))) == 1201
    assert capsys.readouterr().out.splitlines() == ["number", *map(str, range(1201))]


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_a_terminal_of_any_width_loses_nothing(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    words = [f"{chr(97 + number)}" * 30 for number in range(4)]
    print_table([f"heading {number}" for number in range(4)], [words])
    shown = terminal.getvalue()
    assert all(shown.count(word[0]) >= 30 for word in words)
    assert all(f"heading {number}" in shown for number in range(4))


def test_markup_in_a_value_is_only_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    print_table(["value"], [["[red]x[/nonsense]"]])
    assert "[red]x[/nonsense]" in terminal.getvalue()


def test_a_terminal_shows_nothing_around_a_table_and_folds_it_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    print_table(["name", "value"], [["short", "x" * 100]])
    assert [line.rstrip() for line in terminal.getvalue().splitlines()] == [
        "name    value",
        "─" * 80,
        "short   " + "x" * 72,
        "        " + "x" * 28,
    ]
