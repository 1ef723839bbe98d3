"""What tests everywhere are given.

Property tests draw the same examples on every run of ``make test``. ``make faults`` draws new ones; one that fails is
kept in ``.hypothesis`` and comes first the next time. The directories of tests are in memory where there is room, so
nobody waits for a disk: that files are durable is shown by power cuts on a recorded disk, which a real one cannot show.
One broker serves all tests of a worker that leave it as it was; others start their own. So does one ZooKeeper. The
tests of a file run in one worker, so that what they share is started once.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from lamina.cluster.ports import free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.pipeline.java import find_java
from tests.broker.process import BrokerProcess
from tests.compiled_ahead import compile_ahead
from tests.log.building import close_opened

settings.register_profile("lamina", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("faults", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("lamina")

_numbers = count()
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
_MANY_DESCRIPTORS = 150

# The tests start hundreds of processes of Lamina: without compiled bytecode each costs three times as much.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has what it runs in the background ignore Ctrl-C, and so would every command that is interrupted here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES:
    os.environ.setdefault("TMPDIR", str(_MEMORY))
    tempfile.tempdir = None  # Whoever asked before has to ask again.

_LONGEST = (
    "pyspark_lamina/test_in_spark.py",
    "cli/test_consume.py",
    "broker/login/test_clients.py",
    "cli/test_produce.py",
    "pipeline/test_engine.py",
    "broker/test_groups_clients.py",
    "cluster/test_failures.py",
    "cli/test_compact.py",
    "cluster/test_backup.py",
    "broker/test_scale.py",
    "simulation/test_simulation.py",
    "broker/cluster/test_dead_processes.py",
    "log/test_crash.py",
    "docs/test_tour.py",
    "producing/test_task_writing.py",
    "broker/test_compaction.py",
    "cluster/test_local_cluster.py",
    "cluster/test_operating.py",
    "cli/test_consume_group.py",
    "cluster/test_reassigning.py",
    "arrow/test_table_view.py",
    "broker/test_tls.py",
    "docs/test_security.py",
    "cli/test_topics.py",
    "broker/cluster/test_reassignments.py",
    "broker/cleaner/test_process_engine.py",
    "cli/test_groups.py",
    "cli/test_serve.py",
    "cli/cluster/test_up.py",
    "broker/test_transactions_clients.py",
    "broker/moving/test_moves.py",
    "broker/requests/test_large_messages.py",
    "pyspark_lamina/test_stream_progress.py",
    "offline/test_cluster_adopt.py",
    "arrow/test_segment_files.py",
    "arrow/test_reading.py",
    "log/test_faults.py",
    "log/verify/test_damage.py",
    "test_contracts.py",
)
"""The files that take five seconds or more, the longest first; those that wait stand between those that compute."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-of-each", action="store_true", help="run the first case of each test alone")


def pytest_configure(config: pytest.Config) -> None:
    """Compile once what each of the workers would compile, on a machine that has never done so."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        compile_ahead(Path(__file__).parent, config.args)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the longest files begin first: one that begins last is waited for by all the other workers."""
    places = {f"tests/{file}": place for place, file in enumerate(_LONGEST)}
    missing = [file for file in places if not (config.rootpath / file).exists()]
    assert not missing, missing
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    if config.option.one_of_each:
        first: dict[str, pytest.Item] = {}
        others = [item for item in items if first.setdefault(item.nodeid.partition("[")[0], item) is not item]
        config.hook.pytest_deselected(items=others)
        items[:] = first.values()


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end: no garbage collection needs to look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _logs_are_closed() -> Iterator[None]:
    """A worker that kept all logs of its tests open would run out of descriptors."""
    yield
    close_opened()


@pytest.fixture(autouse=True, scope="module")
def _clients_are_closed() -> Iterator[None]:
    """A client of librdkafka keeps its sockets until it is garbage, which an error with a traceback may become late."""
    yield
    if len(os.listdir("/dev/fd")) > _MANY_DESCRIPTORS:
        gc.collect()


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """An empty directory on a disk, for whoever looks at what kind of disk it has."""
    with tempfile.TemporaryDirectory(prefix="lamina-", dir="/var/tmp") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Shared: topics may be made in it, and nothing else. It deletes no records for their age: some are of 2023."""
    never = ("--set", "log.retention.check.interval.ms=86400000")
    with BrokerProcess(tmp_path_factory.mktemp("shared"), *never) as process:
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


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """Shared: each test uses a path of its own in it, and leaves the server running."""
    directory = str(tmp_path_factory.mktemp("zookeeper"))
    with ZooKeeperServer(directory, free_port(), find_java().path) as server:
        yield server


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}"
