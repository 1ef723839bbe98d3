"""`python -m fuzz`: hunts for bad input in every target, for a bounded time; or replays what was found.

Owns the command line, the folders of a hunt and its report. What one hunt does is in `hunting`.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from fuzz import corpus
from fuzz.targets import TARGETS, load

_ROOT = Path(__file__).parents[1]
_BUILD = _ROOT / "build" / "fuzz"
_GRACE_SECONDS = 120
_FINDING = "Test unit written to "
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_PEAK = re.compile(r"stat::peak_rss_mb:\s+(\d+)")
_NO_FUZZER = (
    "There is no fuzzer here: `make fuzz` fetches atheris, which has wheels for CPython 3.11 to 3.14 on Linux x86-64 "
    "only. Replaying a file and `make test`, which runs the whole corpus, work everywhere."
)


@dataclass(frozen=True, slots=True)
class Hunt:
    """How one target went."""

    target: str
    runs: int
    peak_rss_mb: int
    finding: Path | None
    failure: str | None
    """Why the hunt did not end as it should, other than by a finding."""


@click.command()
@click.argument("names", nargs=-1, metavar="[TARGET]... | TARGET FILE...")
@click.option("--seconds", default=20, show_default=True, help="How long each target is fuzzed.")
@click.option("--jobs", default=2, show_default=True, help="How many targets at a time.")
@click.option("--timeout", "timeout_seconds", default=20, show_default=True, help="What one run may take, in seconds.")
@click.option("--rss-limit-mb", default=1024, show_default=True, help="What a process may take of memory.")
@click.option("--max-len", "max_bytes", default=4096, show_default=True, help="The largest input, in bytes.")
def main(
    names: Sequence[str], seconds: int, jobs: int, timeout_seconds: int, rss_limit_mb: int, max_bytes: int
) -> None:
    """Fuzz every target, or those named; with files behind a target's name, run them through it once."""
    if len(names) > 1 and names[0] in TARGETS and names[1] not in TARGETS:
        sys.exit(_replay(names[0], [Path(name) for name in names[1:]]))
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        sys.exit(f"{unknown[0]} is no target; there are {', '.join(TARGETS)}.")
    if find_spec("atheris") is None:
        sys.exit(_NO_FUZZER)
    flags = [
        f"-max_total_time={seconds}",
        f"-timeout={timeout_seconds}",
        f"-report_slow_units={timeout_seconds}",
        f"-rss_limit_mb={rss_limit_mb}",
        f"-max_len={max_bytes}",
        "-print_final_stats=1",
    ]
    hunts = []
    with ThreadPoolExecutor(jobs) as pool:
        for hunt in pool.map(lambda target: _hunt(target, flags, seconds), names or TARGETS):
            click.echo(_line(hunt, seconds))
            hunts.append(hunt)
    sys.exit(any(hunt.finding or hunt.failure for hunt in hunts))


def _replay(target: str, files: Sequence[Path]) -> int:
    one = load(target)
    for path in files:
        try:
            data = path.read_bytes()
        except OSError as error:
            return _complain(f"{path}: {error.strerror}")
        one(data)
        click.echo(f"{path}: nothing is wrong")
    return 0


def _complain(sentence: str) -> int:
    click.echo(sentence, err=True)
    return 2


def _hunt(target: str, flags: Sequence[str], seconds: int) -> Hunt:
    """Grows a corpus of its own in the build folder, beside the committed one, and stops at the first finding."""
    grown, findings, log = _BUILD / "corpus" / target, _BUILD / "findings" / target, _BUILD / f"{target}.log"
    for folder in (grown, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz.hunting", target, *flags, f"-artifact_prefix={findings}/", str(grown)]
    seeds = corpus.ROOT / target
    with log.open("w") as output:
        try:
            status = subprocess.run(
                [*command, str(seeds)] if seeds.is_dir() else command,
                cwd=_ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds + _GRACE_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            return Hunt(target, 0, 0, None, f"it did not end in time: see {log}")
    return _outcome(target, status, log)


def _outcome(target: str, status: int, log: Path) -> Hunt:
    said = log.read_text(errors="replace")
    written = said.partition(_FINDING)[2].split("\n", 1)[0].strip()
    finding = Path(written) if written else None
    failure = None if finding or status == 0 else f"it ended with status {status}: see {log}"
    return Hunt(target, _number(_RUNS, said), _number(_PEAK, said), finding, failure)


def _number(pattern: re.Pattern[str], said: str) -> int:
    found = pattern.search(said)
    return int(found[1]) if found else 0


def _line(hunt: Hunt, seconds: int) -> str:
    runs = f"{hunt.target:18} {hunt.runs:>9} runs in {seconds} s, at most {hunt.peak_rss_mb} MB"
    if hunt.finding is not None:
        found = hunt.finding.relative_to(_ROOT)
        return f"{hunt.target:18} FOUND {found}; see it with: python -m fuzz {hunt.target} {found}"
    return runs if hunt.failure is None else f"{hunt.target:18} FAILED {hunt.failure}"


if __name__ == "__main__":
    main()
