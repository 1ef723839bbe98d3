"""A broker that was a cluster by itself becomes a member of one: interrupted anywhere, and with real processes."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.image.features import LAMINA_VERSION, SUPPORTED
from lamina.image.image import Image
from lamina.log.files import Disk
from lamina.offline import cluster_adopt
from lamina.offline.cluster_adopt import KEPT_METADATA, ClusterAdoption, ClusterAdoptionError, adopt_cluster
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings
from lamina.storage import METADATA_DB, StartError, open_member_storage, open_storage
from lamina.store.founding import founding
from lamina.store.interface import ClusterStore, Operation
from lamina.store.member_file import MemberRecord, read_member_file, write_member_file
from lamina.store.producer_ids import LastBlock, ProducerIds
from lamina.store.znodes import ZnodeMetadata
from tests.broker.in_process import InProcessBroker
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient
from tests.cli.running import run_process
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper

DELETE_TOPICS, INIT_PRODUCER_ID = 20, 22


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What a stopped broker has left: topics, one of them deleted, and a producer id that was given."""
    directory = tmp_path / "data"
    broker = InProcessBroker(directory, {})
    broker.create("orders", 3)
    broker.produce("orders", 5)
    broker.create("gone", 1)
    assert broker.ask(DELETE_TOPICS, 5, topic_names=["gone"], timeout=30_000).responses[0].error_code == 0
    assert broker.ask(INIT_PRODUCER_ID, 4, producer_id=-1, producer_epoch=-1).error_code == 0
    broker.restart()
    broker.close()
    return directory


class Interrupted(Exception):
    pass


class Trial:
    """One directory and one ensemble; a run may be interrupted before or behind each step that lasts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.zookeeper = MemoryZooKeeper()
        self.steps_left: int | None = None

    def step(self, work: Callable[[], None]) -> None:
        for each in (work, lambda: None):
            if self.steps_left is not None:
                if self.steps_left == 0:
                    raise Interrupted
                self.steps_left -= 1
            each()

    def connect(self) -> ClusterStore:
        return SteppingSession(self)

    def adopt(self, *, is_dry_run: bool = False) -> ClusterAdoption:
        return adopt_cluster(self.settings, self.connect, SteppingDisk(self), is_dry_run=is_dry_run)

    @property
    def settings(self) -> BrokerSettings:
        return resolve_broker(sets={"lamina.data.dir": str(self.directory)})

    def stored(self) -> Image:
        return ZnodeMetadata(self.zookeeper.connect()).load()


class SteppingSession(MemorySession):
    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.zookeeper, 6000)
        self._trial = trial

    def transact(self, operations: Sequence[Operation]) -> None:
        self._trial.step(lambda: super(SteppingSession, self).transact(operations))


class SteppingDisk(Disk):
    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self._trial = trial

    def rename(self, old: str, new: str) -> None:
        self._trial.step(lambda: super(SteppingDisk, self).rename(old, new))


@pytest.fixture
def trial(data: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    made = Trial(data)

    def write(path: str, record: MemberRecord) -> None:
        made.step(lambda: write_member_file(path, record))

    monkeypatch.setattr(cluster_adopt, "write_member_file", write)
    return made


def metadata_of(directory: Path) -> Image:
    storage = open_storage(resolve_broker(sets={"lamina.data.dir": str(directory)}))
    image = storage.metadata.image
    storage.close()
    return image


def check_adopted(trial: Trial, before: Image) -> None:
    stored = trial.stored()
    assert stored.cluster_id == before.cluster_id
    assert stored.configs == before.configs
    assert stored.features == before.features
    assert {name: topic.id for name, topic in stored.topics.items()} == {
        name: topic.id for name, topic in before.topics.items()
    }
    for name, topic in stored.topics.items():
        for now, then in zip(topic.partitions, before.topics[name].partitions, strict=True):
            assert (now.replicas, now.isr, now.made_on) == (then.replicas, then.isr, then.made_on)
            assert now.leader_epoch >= then.leader_epoch
    store = trial.zookeeper.connect()
    assert founding(store) is None
    assert ProducerIds(store, LastBlock(1)).next_id() >= 1000
    assert not (trial.directory / METADATA_DB).exists()
    assert (trial.directory / KEPT_METADATA).exists()
    assert read_member_file(str(trial.directory)) == MemberRecord(before.cluster_id)
    settings = resolve_broker(sets={"lamina.data.dir": str(trial.directory), "zookeeper.connect": "zk"})
    member = open_member_storage(settings, trial.zookeeper.connect())
    assert (member.node_id, member.was_clean) == (1, True)
    member.close()


def test_all_metadata_moves_and_a_second_run_has_nothing_to_do(trial: Trial) -> None:
    before = metadata_of(trial.directory)
    assert "orders" in before.topics
    adopted = trial.adopt()
    assert (adopted.cluster_id, adopted.node_id, adopted.is_done_before) == (before.cluster_id, 1, False)
    check_adopted(trial, before)
    assert trial.adopt().is_done_before


def test_a_dry_run_changes_nothing(trial: Trial) -> None:
    files = sorted(os.listdir(trial.directory))
    assert trial.adopt(is_dry_run=True).image is not None
    assert sorted(os.listdir(trial.directory)) == files
    assert trial.zookeeper.zxid == 0
    InProcessBroker(trial.directory, {}).close()


def interruptions(trial: Trial) -> Iterator[Trial]:
    """A copy of the directory for each moment at which a run can be interrupted."""
    for steps in range(200):
        copy = Trial(trial.directory.parent / f"copy-{steps}")
        shutil.copytree(trial.directory, copy.directory)
        copy.steps_left = steps
        # The steps of whatever runs now are those of this copy.
        trial.step = copy.step  # type: ignore[method-assign]
        try:
            copy.adopt()
        except Interrupted:
            copy.steps_left = None
            yield copy
        else:
            return
    raise AssertionError("it never ended")


def test_whoever_is_interrupted_anywhere_goes_on_with_the_next_run(trial: Trial) -> None:
    before = metadata_of(trial.directory)
    count = 0
    for copy in interruptions(trial):
        copy.adopt()
        check_adopted(copy, before)
        count += 1
    assert count > 10


def test_a_broker_that_runs_alone_between_two_runs_loses_nothing(trial: Trial) -> None:
    """It may, until it was made a member."""
    restarted = 0
    for copy in interruptions(trial):
        if read_member_file(str(copy.directory)) is not None:
            with pytest.raises(StartError, match="belongs to a member of cluster"):
                metadata_of(copy.directory)
            continue
        broker = InProcessBroker(copy.directory, {})
        broker.create("later", 2)
        broker.close()
        restarted += 1
        before = metadata_of(copy.directory)
        copy.adopt()
        check_adopted(copy, before)
        assert "later" in copy.stored().topics
    assert restarted > 5


def test_no_broker_starts_in_a_cluster_that_is_half_made(trial: Trial, tmp_path: Path) -> None:
    refused = 0
    for copy in interruptions(trial):
        if founding(copy.zookeeper.connect()) is None:
            continue
        settings = resolve_broker(sets={"lamina.data.dir": str(tmp_path / "other"), "zookeeper.connect": "zk"})
        under_way = founding(copy.zookeeper.connect())
        assert under_way is not None
        if not under_way.is_filled:
            with pytest.raises(StartError, match="being made from `lamina cluster adopt` of broker 1"):
                open_member_storage(settings, copy.zookeeper.connect())
            refused += 1
    assert refused > 2


def test_no_other_broker_starts_before_the_first_one_is_a_member(trial: Trial, tmp_path: Path) -> None:
    """The next run writes all of the metadata again: what others had written by then would be gone."""
    given = {"lamina.data.dir": str(tmp_path / "two"), "zookeeper.connect": "zk", "node.id": "2"}
    filled = 0
    for copy in interruptions(trial):
        under_way = founding(copy.zookeeper.connect())
        if under_way is None:
            continue
        filled += under_way.is_filled
        with pytest.raises(StartError, match="being made from `lamina cluster adopt` of broker 1"):
            open_member_storage(resolve_broker(sets=given), copy.zookeeper.connect())
    assert filled > 2


def refusal(trial: Trial) -> str:
    with pytest.raises(ClusterAdoptionError) as refused:
        trial.adopt()
    return str(refused.value)


def test_what_is_no_stopped_broker_is_refused(trial: Trial, tmp_path: Path) -> None:
    (trial.directory / "logs/.kafka_cleanshutdown").rename(tmp_path / "mark")
    assert "was not left by a clean stop" in refusal(trial)
    (tmp_path / "mark").rename(trial.directory / "logs/.kafka_cleanshutdown")
    lock = Disk().lock(str(trial.directory / "logs/.lock"))
    assert lock is not None
    lock.close()
    (trial.directory / "logs/orders-1").rename(tmp_path / "orders-1")
    assert "orders-1 is in no log directory: is a disk not mounted?" in refusal(trial)
    empty = Trial(tmp_path / "empty")
    assert "is not a broker's log directory" in refusal(empty)
    (tmp_path / "empty/logs").mkdir(parents=True)
    assert "no broker has used it" in refusal(empty)


def test_the_metadata_of_a_newer_version_is_refused(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SUPPORTED, LAMINA_VERSION)
    assert refusal(trial).endswith("does not know that feature: use the version that the brokers run")


def test_an_ensemble_that_holds_another_cluster_is_refused(trial: Trial, tmp_path: Path) -> None:
    settings = resolve_broker(sets={"lamina.data.dir": str(tmp_path / "other"), "zookeeper.connect": "zk"})
    open_member_storage(settings, trial.zookeeper.connect()).close()
    before = dict(trial.zookeeper.entries)
    assert "already: choose another chroot" in refusal(trial)
    assert trial.zookeeper.entries == before
    InProcessBroker(trial.directory, {}).close()


def test_a_broker_is_adopted_and_joined_by_others(tmp_path: Path, zookeeper: ZooKeeperServer, topic: str) -> None:
    few = ("--set", "offsets.topic.num.partitions=1", "--set", "transaction.state.log.num.partitions=1")
    data, chroot = tmp_path / "one", f"{zookeeper.address}/adopted-{topic}"
    with BrokerProcess(data, *few) as alone:
        admin = AdminClient({"bootstrap.servers": alone.address})
        admin.create_topics([NewTopic(topic, 2, config={"retention.ms": "123456789"})])[topic].result(30)
        producer = Producer({"bootstrap.servers": alone.address, "transactional.id": "t"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(100):
            producer.produce(topic, str(number), partition=number % 2)
        producer.commit_transaction(30)
        assert read(alone.address, topic, commit_at=40) == 100
        topic_id = topic_id_of(alone, topic)
        refused = run_process("cluster", "adopt", "--data-dir", data, "--zookeeper", chroot)
        assert refused.status == 1
        assert "is in use by a broker" in refused.err
    dry = run_process("cluster", "adopt", "--data-dir", data, "--zookeeper", chroot, "--dry-run", "--json")
    assert (dry.status, dry.objects[0]["dry_run"]) == (0, True)
    done = run_process("cluster", "adopt", "--data-dir", data, "--zookeeper", chroot)
    assert done.status == 0, done.err
    assert "is now broker 1 of cluster" in done.out
    member = ("--set", f"zookeeper.connect={chroot}", *few)
    with (
        BrokerProcess(data, "--node-id", "1", *member) as one,
        BrokerProcess(tmp_path / "two", "--node-id", "2", *member),
    ):
        assert topic_id_of(one, topic) == topic_id
        assert read(one.address, topic, commit_at=None) == 60
        admin = AdminClient({"bootstrap.servers": one.address})
        config = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
        assert next(iter(config.values())).result(30)["retention.ms"].value == "123456789"
        again = Producer({"bootstrap.servers": one.address, "transactional.id": "t"})
        again.init_transactions(30)
        again.begin_transaction()
        again.produce(topic, b"after", partition=0)
        again.commit_transaction(30)
        assert not [line for line in one.log if "cannot be used" in line or "adopt" in line], one.log
    assert run_process("cluster", "adopt", "--data-dir", data, "--zookeeper", chroot).status == 0


def topic_id_of(broker: BrokerProcess, topic: str) -> str:
    with RawClient(broker) as client:
        return str(client.create_topic(topic))


def read(address: str, topic: str, commit_at: int | None) -> int:
    """How many records a group still had to read; it then says that it has read the first ``commit_at`` of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    parts = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 30)
    count = 0
    for part in parts:
        _, end = consumer.get_watermark_offsets(part, 30)
        start = max(part.offset, 0)
        consumer.assign([TopicPartition(topic, part.partition, start)])
        while (found := consumer.poll(30)) is not None:
            assert found.error() is None
            count += 1
            offset = found.offset()
            assert offset is not None
            if offset >= end - 2:  # behind the last record is the marker of its transaction
                break
    if commit_at is not None:
        consumer.commit(offsets=[TopicPartition(topic, part, commit_at // 2) for part in (0, 1)], asynchronous=False)
    consumer.close()
    return count
