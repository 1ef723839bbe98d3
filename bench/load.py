"""Prepared requests sent by `load.c`, which is never the limit."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.programs import LoadError, program

Address = tuple[str, int]


class Load(NamedTuple):
    answered: int
    """All requests that were answered without an error, also while the load warmed up."""
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    agreed: str = ""
    """Of TLS: version, cipher suite and group of the key exchange."""


def run_load(
    addresses: Sequence[Address],
    frames: Sequence[bytes],
    error_at: int,
    seconds: float,
    count: int | None = None,
    authority: Path | None = None,
) -> Load:
    """Each frame over a connection of its own, to the addresses in turn, again and again; ``count`` answers may be
    enough. Over TLS with the certificate of an authority."""
    shown = ",".join(f"{host}:{port}" for host, port in addresses)
    with tempfile.NamedTemporaryFile(prefix="lamina-load-") as file:
        file.write(b"".join(frames))
        file.flush()
        command = [program("load", with_tls=authority is not None), *([] if authority is None else [str(authority)])]
        command += [shown, file.name, str(len(frames)), str(seconds), str(error_at)]
        command += [] if count is None else [str(count)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    if finished.returncode != 0:
        raise LoadError(f"a load on {shown}: {finished.stderr.strip()}")
    return Load(**json.loads(finished.stdout))
