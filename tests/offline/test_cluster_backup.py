"""The backup of a cluster, where brokers and metadata are not of the same one."""

from pathlib import Path

import pytest

from lamina.client.own_requests import ask
from lamina.log.files import Disk
from lamina.log.identity import new_id
from lamina.offline.backup_target import BackupRefused
from lamina.offline.cluster_backup import take_cluster_backup
from lamina.peer.limits import Limits
from lamina.store.cluster_identity import cluster_id
from tests.broker.process import BrokerProcess
from tests.store.memory_zookeeper import MemoryZooKeeper


def test_brokers_of_another_cluster_than_that_in_zookeeper_are_refused(tmp_path: Path, broker: BrokerProcess) -> None:
    store = MemoryZooKeeper().connect()
    held = cluster_id(store, new_id())
    target = tmp_path / "backup"
    with pytest.raises(BackupRefused) as refused:
        ask(
            broker.address,
            "backup",
            Limits(),
            lambda peers: take_cluster_backup(peers, store, str(target), Disk(), lambda _done, _planned: None),
        )
    assert str(refused.value) == (
        f"the brokers belong to cluster {broker.facts['cluster_id']}, and ZooKeeper holds cluster {held}: "
        "name a broker of that one with --bootstrap-server"
    )
    assert list(tmp_path.iterdir()) == []
