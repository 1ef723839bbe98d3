"""Every fact about when a log is cleaned, what is left and how it is put in place is held by a test that cites it.

The facts are those of docs/spec/cleaning.md. A test cites one in its name (``test_fact_63_…``,
``test_facts_66_to_68_…``) or in its docstring ("Facts 82-85"). This one fails for a fact that nobody cites;
``python -m tests.compaction.test_facts`` prints which tests hold which fact.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.spec import cited_facts, facts

TESTS = Path(__file__).parents[1]

HELD_SECTIONS = ("1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9")
LEFT_OUT = {
    36: "keys are compared by their bytes, or by 128 bits of a hash with a secret: never by MD5",
    37: "there is no map that could be full (fact 104)",
    48: "no segment of Lamina holds offsets that do not fit its indexes; one that does is refused as damaged",
    77: "record formats before version 2 are not known",
}
"""Facts about what Lamina does not have, and why."""


@cache
def citing_tests() -> dict[int, list[str]]:
    """By fact, the tests that cite it."""
    tests: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for function in _functions(ast.parse(path.read_bytes())):
            for number in cited_facts(f"{function.name}\n{ast.get_docstring(function) or ''}"):
                tests[number].append(f"{path.relative_to(TESTS)}::{function.name}")
    return tests


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def test_every_fact_is_held_by_a_test() -> None:
    tests = citing_tests()
    held = [number for number, section in facts().items() if section in HELD_SECTIONS]
    assert len(held) > 80
    assert [number for number in held if number not in tests and number not in LEFT_OUT] == []


def test_nothing_that_is_left_out_is_held_all_the_same() -> None:
    tests = citing_tests()
    assert [number for number in LEFT_OUT if number in tests] == []


if __name__ == "__main__":
    for number, names in sorted(citing_tests().items()):
        print(number, *names, sep="\n   ")
