"""Lamina as it was beside Lamina as it is: ``make bench-revisions BEFORE=REVISION``.

The rows of ``bench.kafka``, with another revision of this repository in Kafka's place: what a change costs, or gains,
is seen in one run of the same clients, with rounds interleaved. Needs no Kafka.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.amounts import FULL, QUICK
from bench.command import Bench, run
from bench.machine import PROJECT
from bench.results import Pair
from bench.rounds import Trial
from bench.subjects import KAFKA, LAMINA, SETTINGS, Subject
from bench.trials import all_trials
from tests.peers.lamina import Lamina

BEFORE, AFTER = "before", "after"


def command_of(sources: Path) -> list[str]:
    """Starts the broker of these sources, with the packages of this environment."""
    return [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(sources)!r}); from lamina.cli import main; main()",
    ]


def extract(revision: str, directory: Path) -> Path:
    """The sources of a revision, below a directory, compiled as those of any broker that has run before."""
    directory.mkdir()
    archive = subprocess.run(["git", "-C", str(PROJECT), "archive", revision, "src"], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(directory)], check=True, input=archive.stdout)
    sources = directory / "src"
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(sources)], check=True)
    return sources


def subjects(revision: str, root: Path) -> Mapping[str, Subject]:
    sources = extract(revision, root / "sources")
    return {
        BEFORE: Lamina(root / BEFORE, SETTINGS, command_of(sources)),
        AFTER: Lamina(root / AFTER, SETTINGS, command_of(PROJECT / "src")),
    }


def trials(is_quick: bool) -> Sequence[Trial]:
    """The rows of ``bench.kafka``, but for those that only repeat one beside another Kafka."""
    rows = all_trials(QUICK if is_quick else FULL)
    return [
        replace(row, subjects={BEFORE: BEFORE, AFTER: AFTER})
        for row in rows
        if row.subjects == {KAFKA: KAFKA, LAMINA: LAMINA}
    ]


def bench_from(revision: str) -> Bench:
    return Bench(
        name="bench-revisions",
        title=f"Lamina of this checkout beside that of {revision}: one broker each, clients on the same machine",
        contestants={BEFORE: f"Lamina {revision}", AFTER: "Lamina"},
        pairs=(Pair(rival=BEFORE, ours=AFTER),),
        notes=("Ratios are the figure of this checkout divided by that of the other revision.",),
        kept_up=(BEFORE, AFTER),
        new_subjects=lambda root: subjects(revision, root),
        new_trials=lambda is_quick, _: trials(is_quick),
        is_published=False,
    )


if __name__ == "__main__":
    before = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    known = ["git", "-C", str(PROJECT), "rev-parse", "--verify", "--quiet", "--short=12", f"{before}^{{commit}}"]
    revision = subprocess.run(known, capture_output=True, text=True).stdout.strip() if before else ""
    if not revision:
        sys.exit(f"{before or 'nothing'} is not a revision of this repository; try: make bench-revisions BEFORE=HEAD~1")
    sys.exit(run(bench_from(revision)))
