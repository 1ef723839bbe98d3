"""Spark 3.5.1 with its own Kafka source and sink, beside the Spark that this project is installed with.

Owns where it comes from: PySpark by pip, the connector's jars by Maven, each once, into the cache of
``tests.peers.kafka``. It is the last Spark whose connector and token provider are to be had in one version.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.peers.kafka import cache_directory, jars

VERSION = "3.5.1"
PY4J = "0.10.9.7"


class SparkMissingError(Exception):
    """This Spark cannot be had on this machine; the message says in one sentence why."""


@cache
def site_packages() -> Path:
    """What goes in front of Python's path to have this PySpark; fetched on the first call ever on this machine."""
    found = cache_directory() / f"pyspark-{VERSION}"
    if not found.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted or a simultaneous download leaves no half package.
        with tempfile.TemporaryDirectory(dir=cache_directory(), ignore_cleanup_errors=True) as scratch:
            fetched = Path(scratch) / "site"
            _install(fetched)
            try:
                fetched.rename(found)
            except OSError:
                if not found.is_dir():
                    raise
    return found


def connector_jars() -> str:
    return jars("spark-3.5/pom.xml", "spark-3.5-source")


def _install(target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    packages = [f"pyspark=={VERSION}", f"py4j=={PY4J}"]
    done = subprocess.run([*pip, "--target", str(target), *packages], capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SparkMissingError(f"pip could not fetch PySpark {VERSION}: {last}")
