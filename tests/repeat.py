"""``make test`` many times in a row, some of them beside a process that keeps a core busy: ``make test-repeat``.

A test that fails once in a hundred runs is found this way, and by nothing else. Prints a line for each run, the tests
that failed, and a tally; exits with 1 if any run failed. The output of each run is kept below ``build/test-repeat``.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "test-repeat"
_SPIN = "while True: pass"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextmanager
def _a_busy_core() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _SPIN])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _run(number: int) -> tuple[bool, float, list[str]]:
    """Whether it passed, how many seconds it took, and what failed."""
    path = OUTPUT / f"run-{number}.txt"
    began = time.monotonic()
    with path.open("wb") as file:
        status = subprocess.call(["make", "--no-print-directory", "test"], cwd=ROOT, stdout=file, stderr=file)
    return status == 0, time.monotonic() - began, _FAILED.findall(path.read_text(errors="replace"))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make test-repeat")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--busy", type=int, default=3)
    asked = parser.parse_args(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    failures: Counter[str] = Counter()
    passed, began = 0, time.monotonic()
    for number in range(1, asked.runs + 1):
        is_busy = number > asked.runs - asked.busy
        with _a_busy_core() if is_busy else nullcontext():
            is_passed, seconds, failed = _run(number)
        passed += is_passed
        failures.update(failed)
        beside = " beside a busy process" if is_busy else ""
        said = "passed" if is_passed else f"failed, see {OUTPUT.relative_to(ROOT)}/run-{number}.txt"
        print(f"run {number:2}{beside}: {said}, {seconds:.0f} s", flush=True)
    for name, count in failures.most_common():
        print(f"{count:4} times {name}")
    print(f"{passed} of {asked.runs} runs passed in {(time.monotonic() - began) / 60:.1f} minutes")
    return int(passed < asked.runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
