"""Running the command line in this process, and as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lamina.cli import main

COMMAND = [sys.executable, "-c", "from lamina.cli import main; main()"]
SOURCES = Path(__file__).parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Lamina:
    """The command, run in this process."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *args: str | Path) -> Outcome:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        out, err = self.capsys.readouterr()
        code = exit_.value.code
        assert isinstance(code, int)
        return Outcome(code, out, err)


@contextmanager
def started(*args: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The command as a process with pipes, ended in the end if it is still there."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def run_process(*args: str | Path, sent: str | None = None, **environment: str) -> Outcome:
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        input=sent,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
