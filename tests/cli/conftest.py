"""What every test of the command line is given."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.records import Records
from tests.cli.running import Lamina
from tests.log.verify.sample import make_directory


@pytest.fixture
def lamina(capsys: pytest.CaptureFixture[str]) -> Lamina:
    return Lamina(capsys)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log directory after a clean stop."""
    return make_directory(tmp_path / "data")


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts a broker of the test's own."""
    with ExitStack() as started:
        yield lambda *arguments: started.enter_context(BrokerProcess(tmp_path / "data", *arguments))


@pytest.fixture
def records(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> Records:
    """Sending to and reading from the shared broker."""
    return Records(lamina, broker.address, tmp_path)
