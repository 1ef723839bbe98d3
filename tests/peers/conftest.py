"""Every test here needs a real Kafka's jars; where they cannot be had, one sentence says why."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import brokers, three_brokers
from tests.peers.kafka import KafkaMissingError, jars
from tests.peers.lamina import Lamina

__all__ = ["brokers", "three_brokers"]
"""Fixtures of `tests/cluster`."""


@pytest.fixture(scope="session", autouse=True)
def kafka_jars() -> str:
    try:
        return jars()
    except KafkaMissingError as missing:
        pytest.exit(str(missing), returncode=1)


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A broker of the module's own; it has to stop cleanly and to have said nothing of unexpected errors."""
    with Lamina(tmp_path_factory.mktemp("lamina")) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


@pytest.fixture(scope="session")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in `go/`."""
    if shutil.which("go") is None:
        pytest.exit("franz-go needs Go: there is no `go` on the PATH.", returncode=1)
    built = tmp_path_factory.mktemp("go") / "peer"
    source = Path(__file__).parent / "go"
    compiled = subprocess.run(["go", "build", "-o", str(built), "."], cwd=source, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    return built
