"""A ZooKeeper for every test that asks for one, in memory and a real one."""

from collections.abc import Iterator

import pytest

from lamina.cluster.zookeeper_server import ZooKeeperServer
from tests.store.ensembles import Ensemble, MemoryEnsemble, RealEnsemble


@pytest.fixture(params=["memory", "zookeeper"])
def ensemble(request: pytest.FixtureRequest) -> Iterator[Ensemble]:
    if request.param == "memory":
        yield MemoryEnsemble()
        return
    server: ZooKeeperServer = request.getfixturevalue("zookeeper")
    opened = RealEnsemble(server.address)
    yield opened
    opened.close()


@pytest.fixture
def real_ensemble(zookeeper: ZooKeeperServer) -> Iterator[RealEnsemble]:
    opened = RealEnsemble(zookeeper.address)
    yield opened
    opened.close()
