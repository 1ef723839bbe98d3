"""Every target of the Makefile that checks something, one after another, with a table at the end: ``make all-checks``.

A target that fails does not stop the others. The output of each is kept below ``build/all-checks``. Exits with 1 if any
failed. About fifty minutes on two quiet cores, for what takes long runs in a short form, which the table names. A short
form has some of each kind, and what a target does by itself is the long one:

- random stories, worlds, logs, transactions and kills: fewer of them, with the same seeds;
- loads and loops under faults: they end earlier, and every fault still happens;
- other people's clients and Spark: of a test with several cases (codecs, mechanisms, victims, protocols) the first one,
  and nothing that another target of these has run already;
- planted bugs: four that `make test` does not look for; mutants: three, of both modules.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "all-checks"
OTHER_PEERS = "not test_files.py and not test_recovery.py and not test_cleaner.py"
"""Of ``make peers`` what is not in ``make peers-files`` and ``make peers-cleaner``."""


class Check(NamedTuple):
    target: str
    short_form: tuple[str, ...] = ()
    """What is given to make, where the target by itself would take long."""


CHECKS = (
    Check("check"),
    Check("test"),
    Check("faults", ("STORIES=40", "TRANSACTIONS=4000")),
    Check("faults-cluster", ("ACKED=6000", "LOOP_SECONDS=60")),
    Check("simulate", ("SEEDS=400",)),
    Check("planted", ("ARGS=R84 R88 R91 R98",)),
    Check("fuzz", ("FUZZ_SECONDS=10",)),
    Check("mutants", ("ARGS=_writing.add has_key",)),
    Check("alerts"),
    Check("peers-files"),
    Check("peers-cleaner", ("LOGS=20",)),
    Check("peers", (f"ARGS=--one-of-each -k '{OTHER_PEERS}'",)),
    Check("peers-spark", ("KILLS=4", "ARGS=--one-of-each")),
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
