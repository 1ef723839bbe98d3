"""The watch of ZooKeeper sees what is written there, and ends also when ZooKeeper is gone."""

from pathlib import Path

import pytest
from kazoo.client import KazooClient

from lamina.cluster.ports import free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.pipeline.java import find_java
from tests.broker.process import eventually
from tests.cluster.faults.store_watch import StoreWatch

pytestmark = pytest.mark.timeout(60)


def test_it_ends_when_the_server_has_stopped(tmp_path: Path) -> None:
    told: list[str] = []
    with ZooKeeperServer(str(tmp_path / "zookeeper"), free_port(), find_java().path) as server:
        client = KazooClient(server.address)
        client.start()
        client.create("/controller", b'{"brokerid": 2}')
        client.create("/controller_epoch", b"1")
        client.stop()
        client.close()
        with StoreWatch(server.address, lambda: 0.0, told.append) as watch:
            eventually(lambda: watch.controller == 2)
            server.stop()
    assert told == ["broker 2 is the controller"]
