"""Breaks the rules of compaction one at a time, and shows that tests of every path notice: ``make mutants``.

A mutant is a copy of the package with one line of ``retain.py`` or ``verdicts.py`` changed; where that line
is compiled into the kernels, they are compiled again. The paths are the rules as plain functions, a pass in one task
and a pass through the shuffle, both compiled. Exits with 1 if a mutant survives where it should not.

Not part of ``make test``: it takes some minutes. ``python -m tests.compaction.mutants [WORD...]`` takes those in whose
line a word is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
RULES = "tests/cleaning/test_rules.py"
TESTS = (*(f"tests/compaction/test_{module}.py" for module in ("retain", "verdicts")), RULES)
PATHS = ("plain", "one task", "shuffle")
_COMPILED = ("retain",)
_SURVIVED, _KILLED = 0, 1
_SECONDS = 600


class Mutant(NamedTuple):
    module: str
    line: str
    instead: str
    survives: str = ""
    """Where no test can notice in a pass, and why."""


UNBROKEN = Mutant("retain", "return SUPERSEDED", "return SUPERSEDED")
MUTANTS = [
    Mutant("retain", "if is_control or offset", "if offset"),
    Mutant("retain", "offset >= end_offset", "offset > end_offset", "fact 104: nothing in a pass is above its end"),
    Mutant("retain", "offset >= end_offset", "offset < end_offset"),
    Mutant("retain", "if not has_key:", "if has_key:"),
    Mutant("retain", "if not has_key:", "if False:"),
    Mutant("retain", "if is_superseded:", "if False:"),
    Mutant("retain", "if is_superseded:", "if not is_superseded:"),
    Mutant("retain", "if is_superseded:", "if is_superseded and has_value:"),
    Mutant("retain", "return SUPERSEDED", "return RETAIN"),
    Mutant("retain", "return WITHOUT_KEY", "return SUPERSEDED"),
    Mutant("retain", "not has_value and now_ms", "now_ms"),
    Mutant("retain", "now_ms >= horizon_ms", "now_ms > horizon_ms"),
    Mutant("retain", "now_ms >= horizon_ms", "False"),
    Mutant("retain", "now_ms >= horizon_ms", "horizon_ms > 0"),
    Mutant("retain", "return EXPIRED_TOMBSTONE", "return SUPERSEDED"),
    Mutant("retain", "if retained_records == 0:", "if retained_records < 0:"),
    Mutant("retain", "RETAIN_HEADER if retain_empty else DISCARD", "DISCARD"),
    Mutant("retain", "RETAIN_HEADER if retain_empty else DISCARD", "RETAIN_HEADER"),
    Mutant("retain", "if not has_horizon and (", "if ("),
    Mutant("retain", "retained_tombstones > 0 or is_discardable_marker", "is_discardable_marker"),
    Mutant("retain", "retained_tombstones > 0 or is_discardable_marker", "retained_tombstones > 0"),
    Mutant("retain", "retained_tombstones > 0", "retained_tombstones > 1"),
    Mutant("retain", "COPY if retained_records == record_count else REBUILD", "REBUILD"),
    Mutant("retain", "COPY if retained_records == record_count else REBUILD", "COPY"),
    Mutant("retain", "if delete_retention_ms > NEVER_MS - now_ms:", "if False:"),
    Mutant("retain", "return now_ms + delete_retention_ms", "return now_ms"),
    Mutant("verdicts", "self._coming[0].first_offset <= batch", "self._coming[0].first_offset < batch"),
    Mutant("verdicts", "key=lambda entry: entry.first_offset", "key=lambda entry: -entry.first_offset"),
    Mutant("verdicts", "discards = discardable and batch.horizon_ms <= self._now_ms", "discards = discardable"),
    Mutant("verdicts", "batch.horizon_ms <= self._now_ms", "batch.horizon_ms < self._now_ms"),
    Mutant("verdicts", "discards = discardable and batch.", "discards = batch."),
    Mutant("verdicts", "discards = discardable = self._judge_data(batch)", "discards = discardable = False"),
    Mutant("verdicts", "if not batch.is_transactional:", "if False:"),
    Mutant("verdicts", "self._writing.add(batch.producer_id)", "pass"),
    Mutant("verdicts", "self._aborting[batch.producer_id] = (aborting[0], True)", "pass"),
    Mutant(
        "verdicts",
        "self._aborting.pop(batch.producer_id, (None, False))",
        "self._aborting.get(batch.producer_id, (None, False))",
    ),
    Mutant("verdicts", "if entry is not None and was_met:", "if entry is not None:"),
    Mutant("verdicts", "self.kept_aborted.append(entry)", "pass"),
    Mutant("verdicts", "self._writing.discard(batch.producer_id)", "pass"),
    Mutant(
        "verdicts",
        "case None:\n                return True",
        "case None:\n                return False",
        "no test of a pass can tell: what has no records keeps none",
    ),
    Mutant("verdicts", "return False\n\n    def _is_retained_empty", "return True\n\n    def _is_retained_empty"),
    Mutant("verdicts", "if batch.last_offset == self._last_offset:", "if False:"),
    Mutant("verdicts", "first_uncleanable_offset - 1", "first_uncleanable_offset"),
    Mutant("verdicts", "or batch.producer_id < 0", "", "no log has an active producer without id"),
    Mutant("verdicts", "if producer.last_data_offset is not None:", "if False:"),
    Mutant("verdicts", "return batch.last_offset == producer.last_data_offset", "return True"),
    Mutant(
        "verdicts",
        "return batch.is_control and batch.producer_epoch",
        "return batch.producer_epoch",
        "who has written in its epoch has a last batch in it",
    ),
    Mutant("verdicts", "and batch.producer_epoch == producer.epoch", ""),
]


def _noticed(sources: Path, cache: Path) -> set[str]:
    """The paths of which a test failed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rf",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *TESTS,
    ]
    environment = {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}", "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode not in (_SURVIVED, _KILLED):
        raise RuntimeError(f"pytest ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return {_path_of(line) for line in done.stdout.splitlines() if line.startswith("FAILED ")}


def _path_of(line: str) -> str:
    if RULES not in line:
        return "plain"
    return "shuffle" if "[shuffle" in line else "one task"


def _break(sources: Path, mutant: Mutant) -> None:
    path = sources / "lamina" / "compaction" / f"{mutant.module}.py"
    text = path.read_text()
    if text.count(mutant.line) != 1:
        raise RuntimeError(f"{path.name} has {text.count(mutant.line)} times: {mutant.line}")
    path.write_text(text.replace(mutant.line, mutant.instead))


def _try(root: Path, mutant: Mutant) -> set[str]:
    """Always in the same place, so that kernels that a mutant leaves alone are compiled once for all."""
    sources = root / "src"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
    _break(sources, mutant)
    if mutant.module not in _COMPILED:
        stamping = sources / "lamina" / "cleaning" / "kernels" / "sources.py"
        stamping.write_text(stamping.read_text().replace("STAMP = _stamp()", "STAMP = 1"))
    return _noticed(sources, root / "cache")


def main(words: list[str]) -> int:
    chosen = [one for one in MUTANTS if not words or any(word in f"{one.module} {one.line}" for word in words)]
    with tempfile.TemporaryDirectory() as root:
        if noticed := _try(Path(root), UNBROKEN):
            raise RuntimeError(f"the tests of {', '.join(noticed)} fail though nothing is broken")
        strays = sum(not _report(mutant, _try(Path(root), mutant)) for mutant in chosen)
    print(f"{strays} of {len(chosen)} mutants were not what they should be")
    return min(strays, 1)


def _report(mutant: Mutant, noticed: set[str]) -> bool:
    """Whether it was noticed where it should be."""
    unnoticed = [path for path in PATHS if path not in noticed]
    is_expected = unnoticed == (["one task", "shuffle"] if mutant.survives else [])
    said = f"survives {' and '.join(unnoticed)}" if unnoticed else "killed"
    why = f" ({mutant.survives})" if mutant.survives else ""
    mark = "" if is_expected else "  <-- not as expected"
    print(f"{mutant.module}: {mutant.line!r} -> {mutant.instead!r}: {said}{why}{mark}", flush=True)
    return is_expected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
