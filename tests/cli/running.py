"""Running the command line in this process, and as a process of its own."""

import json
import os
import subprocess
import sys
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


def run_process(*args: str | Path, **environment: str) -> Outcome:
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
