"""The tables that people read are those of the committed reports."""

from pathlib import Path

import pytest

from bench import published
from bench.published import PAGES, filled, report_of
from bench.report import as_markdown, read_report, write_report
from tests.bench.test_report import REPORT

NO_REPORT = "Not measured yet."


@pytest.mark.parametrize("bench", PAGES)
def test_a_page_has_the_table_of_its_committed_report(bench: str) -> None:
    page = PAGES[bench].read_text()
    table = as_markdown(read_report(report_of(bench))) if report_of(bench).exists() else NO_REPORT
    assert filled(page, bench, table) == page, "stale: run make bench-tables"


def test_a_table_takes_the_place_of_the_one_before() -> None:
    page = "a\n<!-- x: by make bench-tables -->\nold\n<!-- end of x -->\nb\n"
    once = filled(page, "x", "new")
    assert once == "a\n<!-- x: by make bench-tables -->\n\nnew\n\n<!-- end of x -->\nb\n"
    assert filled(once, "x", "new") == once


@pytest.mark.parametrize("page", ["", "<!-- x: by make bench-tables -->\n", "<!-- end of x -->\n"])
def test_a_page_without_a_place_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="there is no place for x"):
        filled(page, "x", "new")


def test_tables_are_put_in_place_and_those_without_a_report_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- one: by make bench-tables -->\n<!-- end of one -->\n")
    monkeypatch.setattr(published, "PROJECT", tmp_path)
    monkeypatch.setattr(published, "REPORTS", tmp_path)
    monkeypatch.setattr(published, "PAGES", {"one": page, "two": page})
    write_report(REPORT, tmp_path / "one.json")
    published.main()
    assert as_markdown(REPORT) in page.read_text()
    assert capsys.readouterr().out == "one: page.md\ntwo: no report yet\n"
