"""docs/tour.md, typed into a terminal from its first line to its last."""

import os
import random
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.shell import Shell
from tests.docs.transcript import Step, steps_of

ROOT = Path(__file__).parents[2]
INSTALLING = ("git clone URL lamina && cd lamina", "make venv")
"""What is not typed: this checkout and this Python are what they lead to."""
KAFKA_PORT, ADMIN_PORT = 9092, 9644

_JOB_ENDED = re.compile(r"\[\d\][+-]?\s+(?:Done|Killed)\b|bash: wait: %\d: no such job$")
"""On a slow machine a job may end before it is waited for: then the shell says so a command earlier."""

_LAMINA = """#!/bin/sh
export PYTHONPATH={sources}
case "$1" in serve|doctor)
    what=$1; shift
    set -- "$what" --listen 127.0.0.1:{kafka} --set lamina.admin.listeners=127.0.0.1:{admin} "$@" ;;
esac
exec {python} -c "from lamina.cli import main; main()" "$@"
"""


@pytest.fixture
def ports() -> dict[int, int]:
    """Free ones for the broker's own, as long as those, so that tables are as wide."""
    free: list[int] = []
    for port in random.sample(range(2000, 9000), 7000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        free.append(port)
        if len(free) == 2:
            break
    return dict(zip((KAFKA_PORT, ADMIN_PORT), free, strict=True))


@pytest.fixture
def shell(disk_path: Path, ports: dict[int, int]) -> Iterator[Shell]:
    programs = disk_path / "bin"
    programs.mkdir()
    words = {"sources": ROOT / "src", "kafka": ports[KAFKA_PORT], "admin": ports[ADMIN_PORT], "python": sys.executable}
    for name, text in (("lamina", _LAMINA.format(**words)), ("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (disk_path / "lamina").mkdir()
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(disk_path),
        "LAMINA_BOOTSTRAP_SERVERS": f"127.0.0.1:{ports[KAFKA_PORT]}",
    }
    with Shell(disk_path / "lamina", environment) as shell:
        yield shell


@pytest.mark.timeout(300)
def test_the_tour_shows_what_happens(shell: Shell, ports: dict[int, int], disk_path: Path) -> None:
    steps = steps_of((ROOT / "docs/tour.md").read_text())
    assert tuple(step.typed for step in steps[: len(INSTALLING)]) == INSTALLING
    for step in map(without_ended_jobs, steps[len(INSTALLING) :]):
        shown = take(step, shell, ports)
        assert step.matches(shown), "\n".join([f"$ {step.typed}", *shown, "", "but the tour shows:", *step.shown])
    assert list((disk_path / "lamina").iterdir()) == [], "it cleans up"


def without_ended_jobs(step: Step) -> Step:
    return replace(step, shown=[line for line in step.shown if not _JOB_ENDED.match(line)])


def take(step: Step, shell: Shell, ports: dict[int, int]) -> list[str]:
    """Types it, with other ports than the tour's; what is shown has the tour's again."""
    typed = step.typed
    for ours, free in ports.items():
        typed = typed.replace(f":{ours}", f":{free}")

    def as_in_the_tour(lines: list[str]) -> list[str]:
        for ours, free in ports.items():
            lines = [line.replace(f":{free}", f":{ours}") for line in lines]
        said = [line for line in lines if not _JOB_ENDED.match(line)]
        return [line.replace(f" --bootstrap-server 127.0.0.1:{KAFKA_PORT}", "") for line in said]

    if step.is_in_background:
        return as_in_the_tour(shell.start(typed, lambda lines: step.matches(as_in_the_tour(lines))))
    return as_in_the_tour(shell.run(typed))
