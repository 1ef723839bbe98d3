"""The backup of a cluster, laid down broker by broker: into a store in memory, interrupted anywhere, or refused."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lamina.image.changes import create_topic, mark_made, set_configs, set_leader_epochs
from lamina.image.features import LAMINA_VERSION, SUPPORTED, finalize_new
from lamina.image.image import Broker, ConfigResource, Image, ResourceType
from lamina.log.backup import MANIFEST
from lamina.log.backup.copier import BackupError, Copier
from lamina.log.backup.directory import LOGS
from lamina.log.backup.fetched_log import FetchedLog
from lamina.log.backup.manifest import ClusterFacts, Manifest, dump_manifest, read_manifest
from lamina.log.files import Disk
from lamina.log.identity import new_id
from lamina.offline.backup_target import BackupRefused
from lamina.offline.cluster_restore import ClusterRestored, restore_cluster
from lamina.offline.restore import restore
from lamina.settings.log_config import LogConfig
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, StartError, open_member_storage
from lamina.store.cluster_identity import cluster_id
from lamina.store.founding import founding
from lamina.store.interface import Operation
from lamina.store.membership import CONTROLLER_EPOCH
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import LastBlock, ProducerIds
from lamina.store.sqlite import SqliteStore
from lamina.store.znodes import ZnodeMetadata
from tests.log.building import NOW_MS, a_batch
from tests.offline.test_backup_steps import drive
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper

TOPIC_ID, LOST_ID = bytes(range(16)), bytes(range(1, 17))
RETENTION = ConfigResource(ResourceType.TOPIC, "orders")
ASSIGNMENT = [(1, 2), (2, 1), (1, 2)]


def backed_up_image() -> Image:
    image = create_topic(Image("an-old-cluster-id-of-22"), "orders", TOPIC_ID, ASSIGNMENT)
    image = create_topic(image, "lost", LOST_ID, [(2, 1)])
    image = set_leader_epochs(image, {("orders", index): 7 + index for index in range(3)})
    image = mark_made(image, 1, [("orders", 0), ("orders", 1), ("orders", 2)])
    return finalize_new(set_configs(image, RETENTION, {"retention.ms": "5"}), [Broker(1, {}, features=SUPPORTED)])


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Three partitions with 4 records each, and one that could not be read."""
    path = tmp_path / "backup"
    path.mkdir()
    copier = Copier(Disk(), str(path), may_link=False)
    copier.make_dir(LOGS)
    taken = []
    for index in range(3):
        log = FetchedLog(copier, ("orders", index), TOPIC_ID, 0, 1 << 30)
        for offset in range(4):
            batch = a_batch(b"k=%d" % offset, base_offset=offset, leader_epoch=7 + index)
            log.append(memoryview(batch), 4)
        taken.append(log.finish(4))
    image = backed_up_image()
    database = SqliteStore(f"{path}/{METADATA_DB}")
    MetadataStore(database, image.cluster_id).save(image)
    ProducerIds(database).skip_to(5000)
    database.close()
    copier.count(METADATA_DB)
    manifest = Manifest(
        *("0", image.cluster_id, -1, NOW_MS, NOW_MS, False, -1, [], taken, dict(copier.files)),
        ClusterFacts(41, (("lost", 0),)),
    )
    copier.write(MANIFEST, dump_manifest(manifest))
    return path


class Interrupted(Exception):
    pass


class Trial:
    """An ensemble and the directories of two brokers; a run may be interrupted at each step."""

    def __init__(self, directory: Path, backup: Path) -> None:
        self.directory = directory
        self.backup = backup
        self.zookeeper = MemoryZooKeeper()
        self.steps_left: int | None = None

    def step(self) -> None:
        if self.steps_left is not None:
            if self.steps_left == 0:
                raise Interrupted
            self.steps_left -= 1

    def settings(self, node_id: int) -> BrokerSettings:
        given = {"lamina.data.dir": str(self.directory / str(node_id)), "zookeeper.connect": "zk"}
        return resolve_broker(sets={**given, "node.id": str(node_id)})

    def restore(self, node_id: int) -> ClusterRestored:
        steps = restore_cluster(
            self.settings(node_id), str(self.backup), lambda: SteppingSession(self), Disk(), lambda _: None
        )
        # Whoever is interrupted undoes what he has begun.
        with closing(steps):
            return drive(steps, lambda _number, _step: self.step())

    def open(self, node_id: int) -> list[str]:
        """Start a broker as far as its storage; what it has of each partition."""
        storage = open_member_storage(self.settings(node_id), self.zookeeper.connect())
        try:
            (directory,) = storage.directories
            logs = directory.open_partitions(lambda _: LogConfig(), NOW_MS)
            return [f"{log.topic}-{log.partition} {log.log_start_offset}-{log.log_end_offset}" for log in logs]
        finally:
            storage.release()


class SteppingSession(MemorySession):
    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.zookeeper, 6000)
        self._trial = trial

    def transact(self, operations: Sequence[Operation]) -> None:
        self._trial.step()
        super().transact(operations)
        self._trial.step()


@pytest.fixture
def trial(tmp_path: Path, backup: Path) -> Trial:
    return Trial(tmp_path / "trial", backup)


def check_restored(trial: Trial) -> None:
    store = trial.zookeeper.connect()
    assert founding(store) is None
    stored = ZnodeMetadata(store).load()
    assert stored.cluster_id != "an-old-cluster-id-of-22"
    assert stored.controller_epoch == 41
    assert {name: topic.id for name, topic in stored.topics.items()} == {"orders": TOPIC_ID, "lost": LOST_ID}
    assert stored.configs == backed_up_image().configs
    assert stored.features == backed_up_image().features
    assert ProducerIds(store, LastBlock(1)).next_id() == 5000
    for index, partition in enumerate(stored.topics["orders"].partitions):
        first = ASSIGNMENT[index][0]
        assert (partition.replicas, partition.isr, partition.made_on) == (ASSIGNMENT[index], (first,), (first,))
        assert partition.leader_epoch == 7 + index
    # Of it nothing was laid down: it counts as lost, so that nobody makes it empty.
    assert stored.topics["lost"].partitions[0].made_on == (2,)
    assert sorted(trial.open(1)) == ["orders-0 0-4", "orders-2 0-4"]
    assert sorted(trial.open(2)) == ["orders-1 0-4"]


def test_each_broker_gets_its_share_and_starts_only_then(trial: Trial) -> None:
    restored = trial.restore(1)
    assert ([one.key for one in restored.partitions], restored.waiting) == ([("orders", 0), ("orders", 2)], (2,))
    with pytest.raises(StartError, match="broker 2 is to get its records from `lamina cluster restore`"):
        trial.open(2)
    assert not (trial.directory / "2").exists()
    assert trial.restore(2).waiting == ()
    check_restored(trial)
    assert trial.zookeeper.entries[CONTROLLER_EPOCH].value == b"41"


def test_whoever_is_interrupted_anywhere_runs_it_again(tmp_path: Path, backup: Path) -> None:
    interrupted = 0
    for steps in range(200):
        trial = Trial(tmp_path / f"trial-{steps}", backup)
        trial.steps_left = steps
        try:
            trial.restore(1)
        except Interrupted:
            interrupted += 1
            trial.steps_left = None
            trial.restore(1)
        trial.steps_left = None
        trial.restore(2)
        check_restored(trial)
        if interrupted < steps:
            break
    assert interrupted > 15


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(BackupError) as refused:
        act()
    return str(refused.value)


def test_what_cannot_be_restored_is_refused_and_nothing_is_touched(trial: Trial, tmp_path: Path) -> None:
    assert "broker 3 keeps nothing in this backup: its brokers are 1, 2" in refusal(lambda: trial.restore(3))
    assert trial.zookeeper.zxid == 0
    (trial.directory / "1").mkdir(parents=True)
    (trial.directory / "1/file").write_text("mine")
    assert "is not empty" in refusal(lambda: trial.restore(1))
    assert trial.zookeeper.zxid == 0
    (trial.directory / "1/file").unlink()
    trial.restore(1)
    assert "broker 1 was restored already" in refusal(lambda: Trial.restore(_moved(trial, tmp_path), 1))
    trial.restore(2)
    assert "choose another chroot" in refusal(lambda: Trial.restore(_moved(trial, tmp_path), 1))


def test_the_directory_of_another_broker_is_refused(trial: Trial) -> None:
    trial.restore(1)
    steps = restore_cluster(
        resolve_broker(sets={"lamina.data.dir": str(trial.directory / "1"), "zookeeper.connect": "zk", "node.id": "2"}),
        *(str(trial.backup), trial.zookeeper.connect, Disk(), lambda _: None),
    )
    told = refusal(lambda: drive(steps))
    assert told == f"{trial.directory}/1 belongs to broker 1: give broker 2 a directory of its own with --data-dir"
    trial.restore(2)
    check_restored(trial)


def test_the_backup_of_a_newer_version_is_refused(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SUPPORTED, LAMINA_VERSION)
    told = refusal(lambda: trial.restore(1))
    assert told.endswith("does not know that feature: use the version that the brokers run")
    assert trial.zookeeper.zxid == 0


def _moved(trial: Trial, tmp_path: Path) -> Trial:
    """The same ensemble, and other directories."""
    other = Trial(tmp_path / "other", trial.backup)
    other.zookeeper = trial.zookeeper
    return other


def test_an_ensemble_with_a_cluster_is_refused(trial: Trial) -> None:
    cluster_id(trial.zookeeper.connect(), new_id())
    assert "choose another chroot" in refusal(lambda: trial.restore(1))
    assert not (trial.directory / "1").exists()


def test_bytes_that_changed_are_refused_and_what_was_laid_down_goes(trial: Trial) -> None:
    path = trial.backup / "logs/orders-2/00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "is damaged" in refusal(lambda: trial.restore(1))
    assert not (trial.directory / "1").exists() or list((trial.directory / "1").iterdir()) == []
    data[-1] ^= 1
    path.write_bytes(data)
    trial.restore(1)
    trial.restore(2)
    check_restored(trial)


def test_a_cluster_and_a_broker_by_itself_are_not_mixed_up(trial: Trial, tmp_path: Path) -> None:
    settings = resolve_broker(sets={"lamina.data.dir": str(tmp_path / "alone")})
    with pytest.raises(BackupRefused, match="lamina cluster restore"):
        drive(restore(settings, str(trial.backup), Disk(), lambda _: None))
    manifest = read_manifest(Disk(), str(trial.backup))
    assert manifest.cluster == ClusterFacts(41, (("lost", 0),))
