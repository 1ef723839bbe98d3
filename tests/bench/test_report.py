"""A run's document, and what it is made into later."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.report import Report, main, read_report, write_report
from tests.bench.comparisons import CONTESTANTS, PAIR, result

RESULTS = [result([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], variant="16")]
REPORT = Report(
    title="Lamina beside Kafka",
    contestants=CONTESTANTS,
    pairs=[PAIR],
    notes=["Both were warm."],
    machine={"date": "2026-01-02", "cores": "2", "memory": "24 GiB", "Lamina": "0123abcd", "Kafka": "4.1.0"},
    rounds=3,
    is_quick=False,
    seconds=1334.0,
    missing=[],
    results=RESULTS,
)


def shown(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str | None:
    monkeypatch.setattr(sys, "argv", ["report", *map(str, arguments)])
    return main()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "build" / "bench.json"
    write_report(REPORT, path)
    return path


def test_a_report_is_read_as_it_was_written(file: Path) -> None:
    again = read_report(file)
    assert again.as_json() == REPORT.as_json()
    assert again.pairs == [PAIR]


def test_every_row_of_a_report_is_a_line_of_its_file(file: Path) -> None:
    (line,) = (line for line in file.read_text().splitlines() if '"requests"' in line)
    assert '"rounds": {"kafka": [1.0, 2.0, 3.0], "lamina": [4.0, 5.0, 6.0]}' in line


def test_a_report_has_every_round_and_who_is_ahead() -> None:
    (row,) = REPORT.as_json()["results"]
    assert row["rounds"] == {"kafka": [1.0, 2.0, 3.0], "lamina": [4.0, 5.0, 6.0]}
    assert row["ahead"] == {"lamina / kafka": "ours"}


def test_the_foot_says_how_and_where_it_was_measured() -> None:
    assert REPORT.foot == [
        "Medians of 3 interleaved rounds, A B B A, least and most in brackets.",
        "Both were warm.",
        "2026-01-02, 2 cores, memory 24 GiB, Lamina 0123abcd, Kafka 4.1.0. The run took 22 minutes.",
    ]


def test_the_foot_names_the_rows_that_had_fewer_rounds() -> None:
    more = replace(result([1.0] * 5, [2.0] * 5), trial="other")
    how, *_ = replace(REPORT, rounds=5, results=[*RESULTS, more]).foot
    assert how == "Medians of 5 interleaved rounds, A B B A, least and most in brackets; 3 of trial."


def test_the_foot_says_how_many_rounds_there_were_not_how_many_were_allowed() -> None:
    how, *_ = replace(REPORT, rounds=5).foot
    assert how == "Medians of 3 interleaved rounds, A B B A, least and most in brackets."


def test_the_foot_says_what_the_figures_are_not() -> None:
    how, *_ = replace(REPORT, is_quick=True, missing=["start", "loading"]).foot
    assert "not for publication" in how
    assert "Not measured: start, loading." in how


def test_the_foot_names_who_was_not_steady_and_a_machine_that_was_disturbed() -> None:
    first = replace(RESULTS[0], unsteady=("kafka",))
    last = replace(result([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]), trial="trial-again")
    how, unsteady, *_ = replace(REPORT, results=[first, last]).foot
    assert how.endswith("disturbed: Lamina gave 5 /s in requests, 16, and 2 at the end.")
    assert unsteady == "Still changing after the longest warm-up: Kafka in trial."


def test_markdown_is_printed_from_a_report(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, file, "--markdown") is None
    assert "| requests, 16 | /s, more | 2 | 5 | 2.50 (2.00–4.00) |" in capsys.readouterr().out


def test_a_picture_is_drawn_from_a_report(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert shown(monkeypatch, file, "--picture", tmp_path / "picture.png") is None
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_report_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    for name in ("other.json", "missing.json"):
        said = shown(monkeypatch, tmp_path / name)
        assert said is not None
        assert "is not the report of a bench" in said
