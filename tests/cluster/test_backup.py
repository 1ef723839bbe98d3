"""A cluster is backed up under load while a leader dies, and restored into another ensemble: nothing is lost."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.broker.process import NO_SPARK, BrokerProcess, eventually
from tests.broker.raw import RawClient
from tests.cli.running import Outcome, run_process
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.offline.test_backup import new_producer_id

PARTITIONS = 3
"""Each broker is the first among the replicas of one, and has records to restore."""
KEYS = 20
PAUSE_SECONDS = 0.01


class Load:
    """Threads that write until it is over, and what was acknowledged to them so far."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.plain: dict[tuple[int, int], bytes] = {}
        """Values by partition and offset."""
        self.compacted: dict[bytes, int] = {}
        """The last number that was acknowledged of each key."""
        self.committed: set[int] = set()
        """Numbers of transactions."""
        self.producer_ids: list[int] = []
        self.errors: list[BaseException] = []
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        works = (self._write_plain, self._write_compacted, self._transact)
        threads = [threading.Thread(target=self._run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        assert self.errors == []

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)

    def _numbers(self) -> Iterator[int]:
        """Of what is written next, with a pause before each: brokers at their limit would show nothing more."""
        for number in count():
            if self._over.wait(PAUSE_SECONDS):
                return
            yield number

    def _producer(self, **config: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "linger.ms": 2, "log_level": 0, **config})

    def _write_plain(self) -> None:
        producer = self._producer(**{"enable.idempotence": True})

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert isinstance(value, bytes)
            self.plain[partition, offset] = value

        for number in self._numbers():
            value = b"%d " % number + b"v" * 2000
            producer.produce("plain", value, partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(WAIT_SECONDS) == 0

    def _write_compacted(self) -> None:
        producer = self._producer(**{"enable.idempotence": True})

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            self.compacted[key] = int(value.split()[0])

        for number in self._numbers():
            producer.produce(
                "compacted", b"%d " % number + b"v" * 5000, key=b"k%d" % (number % KEYS), on_delivery=delivered
            )
            producer.poll(0)
        assert producer.flush(WAIT_SECONDS) == 0

    def _transact(self) -> None:
        producer = self._producer(**{"transactional.id": "pairs", "transaction.timeout.ms": 10_000})
        producer.init_transactions(WAIT_SECONDS)
        for number in self._numbers():
            producer.begin_transaction()
            for topic in ("left", "right"):
                producer.produce(topic, b"%d" % number)
            if number % 5 == 4:
                # Else librdkafka may abort before the coordinator knows that it has begun (its issue 4849).
                assert producer.flush(WAIT_SECONDS) == 0
                producer.abort_transaction(WAIT_SECONDS)
            else:
                producer.commit_transaction(WAIT_SECONDS)
                self.committed.add(number)

    def grow(self) -> None:
        goals = len(self.plain) + 300, len(self.committed) + 20
        eventually(
            lambda: bool(self.errors) or (len(self.plain) >= goals[0] and len(self.committed) >= goals[1]),
            WAIT_SECONDS,
        )
        assert self.errors == []


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All records up to the end, in the order of the partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[Message] = []
    partitions = consumer.list_topics(topic, WAIT_SECONDS).topics[topic].partitions
    for partition in partitions:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(WAIT_SECONDS)
            assert message is not None
            if (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF", error
                break
            found.append(message)
    consumer.close()
    return found


def first_offset(bootstrap: str, topic: str) -> int:
    """Of what is still there: what a log began with may have been cleaned away."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(WAIT_SECONDS)
    assert message is not None
    assert message.error() is None
    offset = message.offset()
    assert offset is not None
    consumer.close()
    return int(offset)


def number_in(message: Message) -> int:
    value = message.value()
    assert isinstance(value, bytes)
    return int(value.split()[0])


def commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("plain", 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    (found,) = consumer.committed([TopicPartition("plain", 0)], WAIT_SECONDS)
    consumer.close()
    return int(found.offset)


def create_topics(brokers: ThreeBrokers) -> None:
    brokers.create_topic("plain", PARTITIONS, retention_ms="987654321")
    brokers.create_topic("left")
    brokers.create_topic("right")
    brokers.create_topic(
        "compacted",
        cleanup_policy="compact",
        segment_bytes=str(1 << 20),
        min_cleanable_dirty_ratio="0.01",
    )


def back_up(brokers: ThreeBrokers, target: Path) -> Outcome:
    zookeeper = brokers.cluster.zookeeper_address()
    return run_process(
        *("cluster", "backup", target, "--json", "--zookeeper", zookeeper, "--bootstrap-server", brokers.bootstrap)
    )


class Restored:
    """Brokers on what was restored, in another chroot of the same ZooKeeper."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self.options = ("--set", f"zookeeper.connect={zookeeper}/restored")

    def restore(self, backup: Path, broker_id: int) -> Outcome:
        where = ("--node-id", str(broker_id), "--data-dir", self.directory / str(broker_id))
        return run_process("cluster", "restore", backup, "--json", *where, *self.options)

    def serve(self, broker_id: int) -> Outcome:
        where = ("--node-id", str(broker_id), "--data-dir", self.directory / str(broker_id))
        return run_process("serve", *where, "--listen", "127.0.0.1:0", *NO_SPARK, *self.options)

    def broker(self, broker_id: int) -> BrokerProcess:
        more = ("--set", "lamina.admin.listeners=127.0.0.1:0")
        return BrokerProcess(self.directory / str(broker_id), "--node-id", str(broker_id), *self.options, *more)


def test_nothing_that_was_acknowledged_before_a_backup_is_lost_in_it(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "500"}
    with ThreeBrokers(tmp_path / "cluster", settings).running() as brokers:
        create_topics(brokers)
        load = Load(brokers.bootstrap)
        with load.running():
            load.grow()
            eventually(lambda: first_offset(brokers.bootstrap, "compacted") > 0, WAIT_SECONDS)
            commit(brokers.bootstrap, 50)
            before = Load(brokers.bootstrap)
            before.plain, before.compacted = dict(load.plain), dict(load.compacted)
            before.committed = set(load.committed)
            killed = brokers.leader("plain")
            with ThreadPoolExecutor() as executor:
                backing_up = executor.submit(back_up, brokers, tmp_path / "backup")
                eventually(lambda: backing_up.done() or any(tmp_path.glob("backup.partial/logs/*/*.log")))
                assert not backing_up.done(), backing_up.result()
                brokers.kill(killed)
                outcome = backing_up.result()
            assert outcome.status == 0, outcome.err
            brokers.restart(killed)
            load.grow()
        topic_id = id_of(brokers.address(1), "plain")
        given = next_producer_id(brokers.address(1))
        summary = outcome.objects[-1]
        assert (summary["missing"], summary["deleted_topics"]) == ([], [])
        assert run_process("verify", "--dir", tmp_path / "backup/logs").status == 0
        restored = Restored(tmp_path / "restored", brokers.cluster.zookeeper_address())
        first = restored.restore(tmp_path / "backup", 1)
        assert first.status == 0, first.err
        assert first.objects[0]["waiting"] == [2, 3]
        assert first.objects[0]["cluster_id"] != summary["cluster_id"]
        refused = restored.serve(2)
        assert refused.status == 1
        assert "broker 2 is to get its records from" in refused.err
        for broker_id in (2, 3):
            done = restored.restore(tmp_path / "backup", broker_id)
            assert done.status == 0, done.err
        with ExitStack() as started:
            processes = [started.enter_context(restored.broker(broker_id)) for broker_id in ALL]
            check_restored(processes, before, load, topic_id, given)
            check_replicated(processes[0].address)
            assert not [line for one in processes for line in one.log if " error " in line[:40] or "adopt" in line]


def test_a_cluster_on_this_machine_is_backed_up_by_its_directory(tmp_path: Path) -> None:
    with ThreeBrokers(tmp_path / "cluster").running() as brokers:
        brokers.create_topic("plain")
        made = run_process("cluster", "backup", "--data-dir", tmp_path / "cluster", tmp_path / "backup", "--json")
        assert made.status == 0, made.err
        assert [row["topic"] for row in made.objects[:-1]] == ["plain"]
        zookeeper = f"{brokers.cluster.zookeeper_address()}/elsewhere"
        where = ("--zookeeper", zookeeper, "--bootstrap-server", brokers.bootstrap)
        lost = run_process("cluster", "backup", *where, tmp_path / "another")
        assert (lost.status, "there is no cluster at this place in ZooKeeper" in lost.err) == (1, True)
    nowhere = run_process("cluster", "backup", "--data-dir", tmp_path / "nothing", tmp_path / "another")
    assert (nowhere.status, "there is no cluster in" in nowhere.err) == (2, True)


def id_of(address: str, topic: str) -> str:
    with RawClient(_At(address)) as client:
        return str(client.create_topic(topic))


def next_producer_id(address: str) -> int:
    with RawClient(_At(address)) as client:
        return new_producer_id(client)


class _At:
    def __init__(self, address: str) -> None:
        self._address = address

    def connect(self) -> Any:
        import socket

        host, _, port = self._address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=30)


def check_restored(processes: list[BrokerProcess], before: Load, load: Load, topic_id: str, given: int) -> None:
    bootstrap = processes[0].address
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert id_of(bootstrap, "plain") == topic_id
    config = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "plain")])
    assert next(iter(config.values())).result(WAIT_SECONDS)["retention.ms"].value == "987654321"
    assert committed(bootstrap) == 50
    assert min(next_producer_id(one.address) for one in processes) >= 0

    plain = {(one.partition(), one.offset()): one.value() for one in read(bootstrap, "plain")}
    assert before.plain.items() <= plain.items()
    assert {key: value for key, value in plain.items() if key in load.plain}.items() <= load.plain.items()

    last = {one.key(): number_in(one) for one in read(bootstrap, "compacted")}
    assert last.keys() >= before.compacted.keys()
    assert all(last[key] >= number for key, number in before.compacted.items())

    # Whoever had a transaction open when the backup was taken has it ended by its coordinator.
    again = Producer({"bootstrap.servers": bootstrap, "transactional.id": "pairs", "log_level": 0})
    again.init_transactions(WAIT_SECONDS)
    for topic in ("left", "right"):
        eventually(lambda topic=topic: is_stable(bootstrap, topic), WAIT_SECONDS)  # type: ignore[misc]
        numbers = [number_in(one) for one in read(bootstrap, topic)]
        assert before.committed <= set(numbers)
        # One side may go further than the other: they are not read at the same moment.
        assert numbers == [number for number in sorted(load.committed) if number <= numbers[-1]]


def is_stable(bootstrap: str, topic: str) -> bool:
    """Whether no transaction is open in a topic."""
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "isolation.level": isolation})
        ends.append(consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_SECONDS)[1])
        consumer.close()
    return ends[0] == ends[1]


def check_replicated(bootstrap: str) -> None:
    """Each partition is on all brokers again, and takes new records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_whole() -> bool:
        topics = admin.list_topics(timeout=WAIT_SECONDS).topics
        return all(
            set(partition.isrs) == set(ALL)
            for topic in ("plain", "left", "right", "compacted", "__consumer_offsets", "__transaction_state")
            for partition in topics[topic].partitions.values()
        )

    eventually(is_whole, WAIT_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    errors: list[object] = []
    for partition in range(PARTITIONS):
        producer.produce("plain", b"after", partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_SECONDS) == 0
    assert errors == [None] * PARTITIONS
    admin.create_topics([NewTopic("later", 1, 3)])["later"].result(WAIT_SECONDS)
