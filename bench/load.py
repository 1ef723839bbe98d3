"""Prepared requests sent by `load.c`, which is never the limit: compiles it once and runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

Address = tuple[str, int]
SOURCE = Path(__file__).parent / "load.c"


class LoadError(Exception):
    """The load generator cannot be built or did not get its answers; one sentence says why."""


class Load(NamedTuple):
    answered: int
    """All requests that were answered without an error, also while the load warmed up."""
    requests_per_second: float
    p50_ms: float
    p99_ms: float


@cache
def _program() -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise LoadError("The load generator is a C program: there is no `cc` or `gcc` on the PATH.")
    program = Path(tempfile.gettempdir()) / f"lamina-load-{SOURCE.stat().st_mtime_ns}"
    if not program.exists():
        with tempfile.TemporaryDirectory(prefix="lamina-load-") as directory:
            compiled = Path(directory) / "load"
            subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-o", str(compiled), str(SOURCE)], check=True)
            # Another process may look for it at this moment: it is there as a whole, or not at all.
            compiled.replace(program)
    return str(program)


def run_load(
    addresses: Sequence[Address], frames: Sequence[bytes], error_at: int, seconds: float, count: int | None = None
) -> Load:
    """Each frame over a connection of its own, to the addresses in turn, again and again; ``count`` answers may be
    enough."""
    shown = ",".join(f"{host}:{port}" for host, port in addresses)
    with tempfile.NamedTemporaryFile(prefix="lamina-load-") as file:
        file.write(b"".join(frames))
        file.flush()
        command = [_program(), shown, file.name, str(len(frames)), str(seconds), str(error_at)]
        command += [] if count is None else [str(count)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    if finished.returncode != 0:
        raise LoadError(f"a load on {shown}: {finished.stderr.strip()}")
    return Load(**json.loads(finished.stdout))
