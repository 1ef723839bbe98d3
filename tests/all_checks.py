"""Every target of the Makefile that checks something, one after another, with a table at the end: ``make all-checks``.

Long targets run in a short form; the table says which. A target that fails does not stop the others. The output of each
is kept below ``build/all-checks``. Exits with 1 if any failed.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "all-checks"


class Check(NamedTuple):
    target: str
    short_form: tuple[str, ...] = ()
    """What is given to make, where the target by itself would take long."""


CHECKS = (
    Check("check"),
    Check("test"),
    Check("faults", ("STORIES=60", "TRANSACTIONS=4000")),
    Check("faults-cluster", ("ACKED=6000", "LOOP_SECONDS=60")),
    Check("simulate", ("SEEDS=400",)),
    Check("planted"),
    Check("fuzz", ("FUZZ_SECONDS=10",)),
    Check("mutants", ("ARGS=has_key is_protected discardable",)),
    Check("alerts"),
    Check("peers-files"),
    Check("peers-cleaner", ("LOGS=20",)),
    Check("peers"),
    Check("peers-spark"),
    Check("soak-cleaner", ("ARGS=--keys 2000000 --gigabytes 1",)),
    Check("soak-cluster", ("ARGS=--quick",)),
)


class Outcome(NamedTuple):
    check: Check
    is_passed: bool
    seconds: float
    last_line: str

    def row(self) -> str:
        result = "passed" if self.is_passed else "FAILED"
        command = " ".join((self.check.target, *self.check.short_form))
        return f"{command:<52} {result:<7} {self.seconds:7.0f} s  {self.last_line[:100]}"


def _run(check: Check) -> Outcome:
    path = OUTPUT / f"{check.target}.txt"
    began = time.monotonic()
    with path.open("wb") as file:
        status = subprocess.call(
            ["make", "--no-print-directory", check.target, *check.short_form], cwd=ROOT, stdout=file, stderr=file
        )
    lines = [line.strip("= ") for line in path.read_text(errors="replace").splitlines() if line.strip("= ")]
    return Outcome(check, status == 0, time.monotonic() - began, lines[-1] if lines else "")


def main(targets: list[str]) -> int:
    known = [check.target for check in CHECKS]
    if unknown := [target for target in targets if target not in known]:
        print(f"no such check: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    OUTPUT.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for check in CHECKS:
        if not targets or check.target in targets:
            print(f"{check.target} ...", flush=True)
            outcomes.append(_run(check))
    print(*(outcome.row() for outcome in outcomes), sep="\n")
    passed = sum(outcome.is_passed for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} passed in {sum(outcome.seconds for outcome in outcomes) / 60:.1f} minutes")
    return int(passed < len(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
