"""Connections over TLS, one after the other, made by `handshakes.c`: how many a broker takes, and what they cost."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.load import Address
from bench.programs import LoadError, program


class Handshakes(NamedTuple):
    answered: int
    """Connections whose request was answered without an error."""
    resumed: int
    """Those that went on with the session of an earlier one."""
    connections_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_seconds: float
    """Of the client."""
    agreed: str
    """Version, cipher suite and group of the key exchange."""


def run_handshakes(
    address: Address,
    authority: Path,
    request: bytes,
    error_at: int,
    connections: int,
    seconds: float,
    *,
    offers_session: bool = False,
    count: int | None = None,
) -> Handshakes:
    """So many connections at a time, each for one request; ``count`` answers may be enough."""
    host, port = address
    with tempfile.NamedTemporaryFile(prefix="lamina-handshakes-") as file:
        file.write(request)
        file.flush()
        kind = "AGAIN" if offers_session else "NEW"
        command = [program("handshakes", with_tls=True), str(authority), f"{host}:{port}", file.name]
        command += [str(connections), str(seconds), str(error_at), kind]
        command += [] if count is None else [str(count)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    if finished.returncode != 0:
        raise LoadError(f"handshakes with {host}:{port}: {finished.stderr.strip()}")
    return Handshakes(**json.loads(finished.stdout))
