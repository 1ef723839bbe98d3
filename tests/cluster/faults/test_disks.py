"""F12: one of the log directories of a broker becomes read-only, then full, while it leads partitions there."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from lamina.client.all_brokers import alter_defaults
from lamina.client.cluster import Cluster
from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.trial import Trial
from tests.cluster.three_brokers import ALL, WAIT_SECONDS
from tests.cluster.verifiable_consumer import read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import history_of
from tests.history.events import SendOutcome
from tests.small_disk import FailingDisk, a_failing_disk

pytestmark = MARKS

MEGABYTE = 1 << 20
DISK_BYTES = 96 * MEGABYTE
LOW_BYTES = 32 * MEGABYTE
LAG_MS = 2500
SETTINGS = {"replica.lag.time.max.ms": str(LAG_MS), "lamina.disk.free.min.bytes": str(LOW_BYTES)}
PARTITIONS = 4
"""Of a topic: some of them are in each of two directories."""
PER_SECOND = 200
NOTICED_SECONDS = 5.0
"""Free space is measured every second."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    """Comes before ``new_trial`` in a test: brokers stop before it is taken away."""
    with a_failing_disk(tmp_path / "disk", DISK_BYTES) as disk:
        yield disk


def test_f12_a_log_directory_becomes_read_only_and_then_full(disk: FailingDisk, new_trial: NewTrial) -> None:
    trial = new_trial(SETTINGS)
    hurt = HurtBroker(trial, disk)
    on_disk, others = hurt.lead("t")
    with trial.load("t", PARTITIONS) as load:
        load.producer.await_acked(1000)
        hurt.loses_its_disk("it becomes read-only", disk.fail, "t", on_disk, load.producer)
        assert_never_moved(trial, "t", others)
        hurt.restart_on_mended_disk()
        trial.await_in_sync("t", PARTITIONS)
        on_disk, others = hurt.lead("u")
        with (
            VerifiableProducer(
                trial.brokers.bootstrap, "u", PARTITIONS, "producer of u", trial.story.now_ms, PER_SECOND
            ) as producer,
            trial.consumer("u", PARTITIONS) as consumer,
        ):
            producer.await_acked(500)
            refuses_while_it_is_nearly_full(hurt, on_disk, others, producer)
            trial.await_in_sync("t", PARTITIONS)
            set_least_free_bytes(trial, 0)
            hurt.loses_its_disk("it becomes full", disk.fill, "u", on_disk, producer)
            assert_never_moved(trial, "u", others)
            hurt.restart_on_mended_disk()
            trial.await_in_sync("t", PARTITIONS)
            trial.await_in_sync("u", PARTITIONS)
            producer.await_acked(500)
            producer.stop()
            final = read_all(trial.brokers.bootstrap, "u", PARTITIONS)
            values = {value for found in final.values() for value in found.values()}
            trial.story.within(
                WAIT_SECONDS, "our consumer read u", lambda: values <= {read.value for read in consumer.reads}
            )
    assert all("POLICY_VIOLATION" in error for error in producer.errors), producer.errors
    trial.story.judge(history_of([producer], [consumer], final))
    for topic in ("t", "u"):
        for partition in range(PARTITIONS):
            trial.brokers.assert_replicas_are_equal(topic, partition)


class HurtBroker:
    """The one of three that has two log directories, and one of them on a disk that is hurt."""

    def __init__(self, trial: Trial, disk: FailingDisk) -> None:
        self.id = trial.random.choice(ALL)
        self.trial = trial
        self.disk = disk
        self._log_dir = disk.path / "logs"
        trial.brokers.expected_complaints |= {
            f"the log directory {self._log_dir} is offline",
            f"the disk of {self._log_dir} is nearly full",
        }
        log_dirs = [*trial.brokers.log_dirs(self.id), self._log_dir]
        trial.brokers.own_settings[self.id] = {"log.dirs": ",".join(map(str, log_dirs))}
        trial.restart(self.id)

    def lead(self, topic: str) -> tuple[list[int], list[int]]:
        """A new topic of which it leads all. Returns the partitions on the disk, and the others."""
        self.trial.create_topic(topic, PARTITIONS, [self.id] * PARTITIONS)
        on_disk = self.on_disk(topic)
        others = [index for index in range(PARTITIONS) if index not in on_disk]
        self.trial.story.tell(f"{topic}: partitions {on_disk} of broker {self.id} are on the disk, {others} are not")
        assert on_disk, "no partition is on the disk"
        assert others, "all partitions are on the disk"
        return on_disk, others

    def on_disk(self, topic: str) -> list[int]:
        """Partitions whose replicas here are on the disk."""
        replicas = {index: self.trial.brokers.replica(self.id, topic, index) for index in range(PARTITIONS)}
        return [index for index, path in replicas.items() if path.is_relative_to(self._log_dir)]

    def loses_its_disk(
        self,
        how: str,
        hurt: Callable[[], object],
        topic: str,
        partitions: Collection[int],
        producer: VerifiableProducer,
    ) -> None:
        """When its disk is hurt, others lead what is there, and take records; the broker itself goes on."""
        trial, process = self.trial, self.trial.brokers.pid(self.id)
        hurt_ms = trial.story.now_ms()
        trial.story.tell(f"the disk of broker {self.id}: {how}")
        hurt()
        for partition in partitions:
            trial.await_new_leader((topic, partition), self.id)
        for partition in partitions:
            trial.await_resumed(producer, partition, hurt_ms)
            assert self.id not in trial.watch.in_sync((topic, partition))
        producer.await_acked(500)
        assert trial.brokers.pid(self.id) == process

    def restart_on_mended_disk(self) -> None:
        """It stops without being forced to, although one of its directories is gone."""
        self.trial.stop(self.id)
        self.trial.story.tell("mounting the disk again")
        self.disk.mount_again()
        for filler in self.disk.path.glob("filler-*"):
            filler.unlink()
        self.trial.restart(self.id)


def assert_never_moved(trial: Trial, topic: str, partitions: Collection[int]) -> None:
    """What is not on the disk has had one leader, and all replicas in sync, from the beginning."""
    for partition in partitions:
        states = [str(state) for _, where, state in trial.watch.changes if where == (topic, partition)]
        assert len(states) == 1, f"{topic}-{partition}: {states}"


def refuses_while_it_is_nearly_full(
    hurt: HurtBroker, on_disk: Collection[int], others: Collection[int], producer: VerifiableProducer
) -> None:
    """Below the limit producers are told so, and followers there fall behind. It passes by itself."""
    trial = hurt.trial
    trial.story.tell(f"the disk of broker {hurt.id}: it becomes nearly full")
    filler = hurt.disk.fill(but_bytes=LOW_BYTES // 2)
    low_ms = trial.story.now_ms()
    trial.story.within(NOTICED_SECONDS, "somebody is refused", lambda: producer.errors)
    for partition in others:
        trial.await_resumed(producer, partition, low_ms)
    trial.story.within(
        LAG_MS / 1000 + NOTICED_SECONDS,
        f"broker {hurt.id} is out of sync where it follows",
        lambda: all(hurt.id not in trial.watch.in_sync(("t", one)) for one in hurt.on_disk("t")),
    )
    assert {trial.watch.leader(("u", partition)) for partition in range(PARTITIONS)} == {hurt.id}
    free_ms = trial.story.now_ms()
    trial.story.tell(f"the disk of broker {hurt.id}: there is room again")
    filler.unlink()
    for partition in on_disk:
        trial.await_resumed(producer, partition, free_ms)
    refused = [send for send in producer.sends if send.outcome is SendOutcome.FAILED]
    trial.story.tell(f"{len(refused)} records of {producer.name} were refused")
    assert {send.partition[1] for send in refused} == set(on_disk)


def set_least_free_bytes(trial: Trial, least_bytes: int) -> None:
    """On all brokers."""
    wanted = {"lamina.disk.free.min.bytes": str(least_bytes)}
    trial.story.tell(f"from now on {wanted}")
    alter_defaults(Cluster(trial.brokers.bootstrap), wanted)
