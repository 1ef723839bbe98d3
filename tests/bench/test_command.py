"""What a bench leaves behind, however it ends."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.command import Bench, run
from bench.report import read_report
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.subjects import Subject
from tests.bench.comparisons import CONTESTANTS, PAIR
from tests.bench.idle_broker import IdleBroker

FIGURE = Figure("group", "figure", "/s", "more")


class Story:
    """A bench of two rows, the second of which may fail."""

    def __init__(self, tmp_path: Path, failure: BaseException | None = None) -> None:
        self.report = tmp_path / "report.json"
        self.roots: list[Path] = []
        self._failure = failure
        self.bench = Bench(
            "bench-story", "A story", CONTESTANTS, [PAIR], ["A note."], list(CONTESTANTS), self._subjects, self._trials
        )

    def run(self, monkeypatch: pytest.MonkeyPatch, *arguments: object, is_default: bool = False) -> str | None:
        words = ["bench-story", *([] if is_default else ["--json", self.report]), *arguments]
        monkeypatch.setattr(sys, "argv", [str(word) for word in words])
        monkeypatch.setattr("bench.command.signal.signal", lambda *_: None)
        return run(self.bench)

    def _subjects(self, root: Path) -> Mapping[str, Subject]:
        self.roots.append(root)
        (root / "data").mkdir()
        return {name: IdleBroker(name, []) for name in CONTESTANTS}

    def _trials(self, is_quick: bool, scratch: Path) -> list[Trial]:
        return [Trial(name, (FIGURE,), self._row(name), {who: who for who in CONTESTANTS}) for name in ("one", "two")]

    def _row(self, name: str) -> Any:
        def row(subject: Subject, topic: str) -> Values:
            if name == "two" and self._failure is not None:
                raise self._failure
            return (2.0 if subject.bootstrap == "lamina" else 1.0,)

        return row


def test_a_run_writes_a_report_and_draws_a_picture_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert story.run(monkeypatch, "--quick") is None
    report = read_report(story.report)
    assert [result.rounds for result in report.results] == [{"kafka": (1.0,) * 3, "lamina": (2.0,) * 3}] * 2
    assert report.missing == []
    assert story.report.with_suffix(".png").exists()


@pytest.mark.parametrize(
    ("arguments", "directory"),
    [
        ([], "docs"),
        (["--quick"], "build"),
        (["--only", "one"], "build"),
        (["--rounds", "4"], "build"),
        (["--rounds", "6"], "docs"),
    ],
)
def test_only_a_whole_run_leaves_rounds_and_picture_where_they_are_committed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], directory: str
) -> None:
    monkeypatch.setattr("bench.command.PUBLISHED", tmp_path / "docs")
    monkeypatch.setattr("bench.command.UNPUBLISHED", tmp_path / "build")
    assert Story(tmp_path).run(monkeypatch, *arguments, is_default=True) is None
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("bench-story.*"))
    assert written == [f"{directory}/bench-story.json", f"{directory}/bench-story.png"]


def test_rows_that_were_not_asked_for_are_told_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert story.run(monkeypatch, "--quick", "--only", "two", "--rounds", "1") is None
    report = read_report(story.report)
    assert ([result.trial for result in report.results], report.missing) == (["two"], ["one"])


def test_what_was_measured_before_a_failure_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    story = Story(tmp_path, TimeoutError("nobody answered"))
    assert story.run(monkeypatch, "--quick") == "TimeoutError: nobody answered"
    report = read_report(story.report)
    assert ([result.trial for result in report.results], report.missing) == (["one"], ["two"])


@pytest.mark.parametrize("failure", [None, TimeoutError(), KeyboardInterrupt()])
def test_data_lies_where_it_was_told_and_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: BaseException | None
) -> None:
    directory = tmp_path / "disk"
    directory.mkdir()
    story = Story(tmp_path, failure)
    story.run(monkeypatch, "--quick", "--dir", directory)
    assert [root.parent for root in story.roots] == [directory]
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("wrong", [("--rounds", "0"), ("--dir", "/absent"), ("--only", "three")])
def test_options_that_make_no_sense_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit):
        Story(tmp_path).run(monkeypatch, "--quick", *wrong)
