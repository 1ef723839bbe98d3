"""What every test of a cluster on this machine is given."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lamina.cluster.errors import ClusterError
from lamina.cluster.local_cluster import LocalCluster
from tests.broker.process import SOURCES
from tests.cluster.three_brokers import ThreeBrokers

NO_SPARK = {"lamina.spark.master": "none"}
"""Starting Spark takes ten seconds."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """One that is not started yet; nothing of it is left running."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    cluster = LocalCluster(tmp_path / "cluster")
    yield cluster
    with suppress(ClusterError):
        cluster.kill()
        cluster.stop()


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    """Shared by the tests of a module."""
    with ThreeBrokers(tmp_path_factory.mktemp("cluster")).running() as brokers:
        yield brokers


@pytest.fixture
def brokers(three_brokers: ThreeBrokers) -> Iterator[ThreeBrokers]:
    """All of them run, whatever the test before did to them."""
    yield three_brokers
    three_brokers.heal()
