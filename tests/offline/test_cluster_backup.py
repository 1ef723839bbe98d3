"""The backup of a cluster, where brokers and metadata are not of the same one, or a leader is silent."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamina.client.own_requests import ask
from lamina.image.changes import create_topic
from lamina.log.files import Disk
from lamina.log.identity import new_id
from lamina.offline.backup_target import BackupRefused
from lamina.offline.cluster_backup import take_cluster_backup
from lamina.peer.cluster import ClusterClient
from lamina.peer.fetching import Fetched
from lamina.peer.limits import Limits
from lamina.peer.listing import LATEST, ListedOffset
from lamina.store.cluster_identity import cluster_id
from lamina.store.znodes import ZnodeMetadata
from tests.broker.process import BrokerProcess
from tests.store.memory_zookeeper import MemoryZooKeeper
from tests.store.test_membership import registered


def test_brokers_of_another_cluster_than_that_in_zookeeper_are_refused(tmp_path: Path, broker: BrokerProcess) -> None:
    store = MemoryZooKeeper().connect()
    held = cluster_id(store, new_id())
    target = tmp_path / "backup"
    with pytest.raises(BackupRefused) as refused:
        ask(
            broker.address,
            "backup",
            {},
            Limits(),
            lambda peers: take_cluster_backup(peers, store, str(target), Disk(), lambda _done, _planned: None),
        )
    assert str(refused.value) == (
        f"the brokers belong to cluster {broker.facts['cluster_id']}, and ZooKeeper holds cluster {held}: "
        "name a broker of that one with --bootstrap-server"
    )
    assert list(tmp_path.iterdir()) == []


class QuietLeader:
    """Two partitions of a topic: of the first its leader says that it has records, and gives none."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id

    async def cluster_id(self) -> str:
        return self._cluster_id

    async def list_offset(self, _topic: str, partition: int, timestamp_ms: int) -> ListedOffset:
        return ListedOffset(3 if timestamp_ms == LATEST and partition == 0 else 0, -1, -1)

    async def fetch(self, *_key: object, **_how: object) -> Fetched:
        return Fetched(memoryview(b""), 3, 3, 0, ())

    async def request(self, *_: object) -> Any:
        return SimpleNamespace(results=())


def test_a_leader_that_sends_nothing_costs_the_backup_its_partitions_alone(tmp_path: Path) -> None:
    store = MemoryZooKeeper().connect()
    tenure = registered(store, 1).elect()
    assert tenure is not None
    held, metadata = cluster_id(store, new_id()), ZnodeMetadata(store)
    empty = metadata.load()
    metadata.write(empty, create_topic(empty, "t", bytes(range(16)), [(1,), (1,)]), tenure)
    peers = cast(ClusterClient, QuietLeader(held))
    taking = take_cluster_backup(peers, store, str(tmp_path / "backup"), Disk(), lambda _done, _planned: None)
    backup = asyncio.run(taking)
    assert backup.missing == {"t-0": "its leader sends nothing from offset 0 on"}
    assert [one.key for one in backup.manifest.partitions] == [("t", 1)]
