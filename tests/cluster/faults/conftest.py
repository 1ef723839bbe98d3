"""What every test of faults is given: which run it is, and a trial whose files are kept below build/faults-cluster."""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from zlib import crc32

import pytest

from tests.cluster.faults.trial import Trial
from tests.peers.conftest import kafka_jars

__all__ = ["kafka_jars"]
"""A fixture: Kafka's own clients work beside ours."""

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "build" / "faults-cluster"
RUNS = int(os.environ.get("LAMINA_FAULT_RUNS", "1"))
ACKED = int(os.environ.get("LAMINA_FAULT_ACKED", "20000"))

MARKS = [
    pytest.mark.faults_cluster,
    pytest.mark.timeout(900),
    # Clients leave sockets behind when their brokers go away.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Of every module here."""

NewTrial = Callable[..., Trial]


@pytest.fixture(scope="session", params=range(1, RUNS + 1), ids=lambda number: f"run-{number}", autouse=True)
def run(request: pytest.FixtureRequest) -> int:
    """All tests, then all of them again."""
    number = request.param
    assert isinstance(number, int)
    return number


_HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """So that the data of a test that failed can be kept."""
    report = yield
    item.stash[_HAS_FAILED] = report.failed or item.stash.get(_HAS_FAILED, False)
    return report


@pytest.fixture
def new_trial(request: pytest.FixtureRequest, tmp_path: Path, run: int) -> Iterator[NewTrial]:
    """Starts a cluster of the test's own, with settings by Kafka's names; what is random differs from run to run."""
    name = request.node.name.removeprefix("test_").replace(f"[run-{run}", "").rstrip("]")
    kept = KEPT / f"run-{run}" / name
    with ExitStack() as running:

        def start(settings: dict[str, str] | None = None, wanted: int = ACKED) -> Trial:
            trial = Trial(tmp_path / "cluster", kept, crc32(name.encode()) + run, wanted, settings)
            return running.enter_context(trial.running())

        yield start
    if request.node.stash.get(_HAS_FAILED, False):
        shutil.copytree(tmp_path / "cluster", kept / "cluster")
