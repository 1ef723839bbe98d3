"""Stores to try things on, and other processes that use one, to be killed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager

from lamina.store.sqlite import SqliteStore


@contextmanager
def temporary_store() -> Iterator[SqliteStore]:
    """For property tests, which cannot have a fixture for each example."""
    with tempfile.TemporaryDirectory() as directory, closing(SqliteStore(f"{directory}/metadata.db")) as store:
        yield store


@contextmanager
def running(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A Python process whose output can be read; killed at the end, however that comes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
