"""What code and tests cite of the specification is there: docs/spec has every fact, section and fault, by number."""

from functools import cache
from pathlib import Path

import pytest

from tests.spec import ROOT, cited_facts, cited_faults, cited_sections, facts, faults, sections

CITING = ("src", "tests", "fuzz", "bench")


@cache
def citing_files() -> list[tuple[Path, str]]:
    """All code, with lines that were broken joined again."""
    paths = (path for folder in CITING for path in sorted((ROOT / folder).rglob("*.py")))
    return [(path, " ".join(path.read_text().split())) for path in paths if path != Path(__file__)]


def test_every_fact_that_is_cited_is_there() -> None:
    cited = {number for _, text in citing_files() for number in cited_facts(text)}
    assert len(cited) > 90
    assert cited - facts().keys() == set()


def test_every_section_that_is_cited_is_there() -> None:
    cited = {section for _, text in citing_files() for section in cited_sections(text)}
    assert len(cited) > 10
    assert cited - sections() == set()


def test_every_fault_that_is_cited_is_there() -> None:
    assert {
        number for path, text in citing_files() if "tests" in path.parts for number in cited_faults(text)
    } == faults()


def test_facts_are_numbered_without_a_gap() -> None:
    assert list(facts()) == list(range(1, len(facts()) + 1))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("test_fact_7_it_waits_300_ms", {7}),
        ("test_facts_66_to_68_and_70_a_tombstone", {66, 67, 68, 70}),
        ("Facts 82-85, 90 and 91: 12 files", {82, 83, 84, 85, 90, 91}),
        ("it has 5 records", set()),
    ],
)
def test_citations_are_read_as_they_are_meant(text: str, numbers: set[int]) -> None:
    assert cited_facts(text) == numbers


def test_sections_and_faults_are_read_as_they_are_meant() -> None:
    assert cited_sections("formats.md §2.3 and protocol.md §1, KIP-227") == {
        ("formats.md", "2.3"),
        ("protocol.md", "1"),
    }
    assert cited_faults("F8 and F9, noqa: F401") == {8, 9}
    assert cited_faults("def test_f12_a_disk_is_full, test_f40_no_fault") == {12}
