"""The C programs beside this module: compiled once, as each is asked for. Must not know what they do."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

_TLS = ("-DWITH_TLS", "-lssl", "-lcrypto")


class LoadError(Exception):
    """A load generator cannot be built or did not get its answers; one sentence says why."""


@cache
def program(name: str, *, with_tls: bool = False) -> str:
    """The path of one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise LoadError("The load generator is a C program: there is no `cc` or `gcc` on the PATH.")
    sources = Path(__file__).parent
    source = sources / f"{name}.c"
    changed_ns = max(each.stat().st_mtime_ns for each in (source, *sources.glob("*.h")))
    compiled = Path(tempfile.gettempdir()) / f"lamina-{name}{'-tls' if with_tls else ''}-{changed_ns}"
    if not compiled.exists():
        with tempfile.TemporaryDirectory(prefix=f"lamina-{name}-") as directory:
            fresh = Path(directory) / name
            command = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(fresh), str(source), *(_TLS if with_tls else ())]
            finished = subprocess.run(command, capture_output=True, text=True)
            if finished.returncode != 0:
                needs = "; it needs the headers of OpenSSL (libssl-dev)" if with_tls else ""
                raise LoadError(f"{source.name} cannot be compiled{needs}: {finished.stderr.strip()[:500]}")
            # Another process may look for it at this moment: it is there as a whole, or not at all.
            fresh.replace(compiled)
    return str(compiled)
