"""What tests everywhere are given.

Property tests draw the same examples on every run, and a slow machine does not fail them. One broker serves all
tests of a worker that leave it as it was; others start their own.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from tests.broker.process import BrokerProcess

settings.register_profile("lamina", derandomize=True, deadline=None)
settings.load_profile("lamina")

_numbers = count()
_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """An empty directory for tests that never ask whether the real disk keeps anything."""
    if not os.access(_IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="lamina-", dir=_IN_MEMORY) as path:
        yield Path(path)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Shared: topics may be made in it, and nothing else."""
    with BrokerProcess(tmp_path_factory.mktemp("shared")) as process:
        yield process
    assert not [line for line in process.log if "Traceback" in line], process.log


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts a broker of the test's own."""
    started: list[BrokerProcess] = []

    def start(*arguments: str) -> BrokerProcess:
        process = BrokerProcess(tmp_path / "data", *arguments)
        started.append(process)
        return process.start()

    yield start
    for process in started:
        process.__exit__(None, None, None)


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}"
