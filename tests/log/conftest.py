"""Where the log's tests keep thousands of small directories: in memory, if the machine offers that."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """An empty directory for tests that never ask whether the real disk keeps anything."""
    if not os.access(_IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="lamina-", dir=_IN_MEMORY) as path:
        yield Path(path)
