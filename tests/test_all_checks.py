"""The short forms of all checks are forms that the Makefile knows: a variable that it does not use shortens nothing."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.all_checks import CHECKS, Check

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.target)
def test_what_a_target_is_given_is_in_its_commands(check: Check) -> None:
    """As make would run them; nothing is run."""
    given = [each.partition("=")[2] for each in check.short_form]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "--no-print-directory", check.target, *check.short_form]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert [value for value in given if value not in told] == []
    assert told


def test_targets_that_check_something_are_among_them() -> None:
    told = re.findall(r"^\| `make (\S+?)[` ]", (ROOT / "README.md").read_text(), re.MULTILINE)
    others = {name for name in told if name.startswith("bench-")} | {"test-repeat", "all-checks"}
    assert {*told} - others <= {check.target for check in CHECKS}
    assert "faults" in told
