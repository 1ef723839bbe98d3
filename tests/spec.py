"""docs/spec as tests see it: which facts, sections and faults it has, and which of them a text cites."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs" / "spec"

_FACT = re.compile(r"^(\d+)\. ", re.MULTILINE)
_SECTION = re.compile(r"^#+ (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
_FAULT = re.compile(r"\*\*F(\d+),")
_CITED_FACTS = re.compile(r"[Ff]acts? ((?:\d+(?:-\d+| to \d+)?(?:, | and |,and )?)+)")
_CITED_SECTION = re.compile(r"\b([a-z-]+\.md) §(\d+(?:\.\d+)?)")
_CITED_FAULT = re.compile(r"\b(?:F|test_f)([1-9]|1[0-2])(?:_|\b)")


@cache
def facts() -> dict[int, str]:
    """The facts of cleaning, each with the number of its section."""
    found: dict[int, str] = {}
    for part in re.split(r"^## ", (SPEC / "cleaning.md").read_text(), flags=re.MULTILINE)[1:]:
        section = part.split(maxsplit=1)[0]
        found |= {int(number): section for number in _FACT.findall(part)}
    return found


@cache
def sections() -> set[tuple[str, str]]:
    return {(path.name, number) for path in SPEC.glob("*.md") for number in _SECTION.findall(path.read_text())}


@cache
def faults() -> set[int]:
    return {int(number) for number in _FAULT.findall((SPEC / "reliability.md").read_text())}


def cited_facts(text: str) -> set[int]:
    """The facts that a name or a sentence cites."""
    found: set[int] = set()
    for cited in _CITED_FACTS.findall(text.replace("_", " ")):
        for first, last in re.findall(r"(\d+)(?:(?:-| to )(\d+))?", cited):
            found.update(range(int(first), int(last or first) + 1))
    return found


def cited_sections(text: str) -> set[tuple[str, str]]:
    return set(_CITED_SECTION.findall(text))


def cited_faults(text: str) -> set[int]:
    return {int(number) for number in _CITED_FAULT.findall(text)}
