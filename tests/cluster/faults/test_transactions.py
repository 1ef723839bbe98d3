"""F10: records are copied in transactions while coordinators, leaders and the copying program are killed."""

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.cluster.exactly_once_copy import copied_value
from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.copies import Copies
from tests.cluster.faults.trial import FULL_IN_SYNC_SECONDS, Trial
from tests.cluster.three_brokers import WAIT_SECONDS
from tests.cluster.verifiable_consumer import read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.history.events import History, Partition

pytestmark = MARKS

RECORDS = 30_000
A_TRANSACTION = 300
PARTITIONS = 2
COPY_SECONDS = 180.0


def test_f10_a_copy_is_exact_whoever_is_killed(new_trial: NewTrial) -> None:
    trial = new_trial({"transaction.state.log.num.partitions": "1"})
    records = min(RECORDS, 3 * trial.wanted // 2)
    for topic in ("source", "target"):
        trial.create_topic(topic, PARTITIONS)
    bootstrap = trial.brokers.bootstrap
    with (
        trial.consumer("target", PARTITIONS) as reader,
        trial.kafka_consumer("target", copied_value) as kafka_reader,
        VerifiableProducer(bootstrap, "source", PARTITIONS, "filler", trial.story.now_ms, 1000) as producer,
        trial.kafka_producer("source") as kafka_producer,
        Copies(bootstrap, "source", "target", A_TRANSACTION, trial.story) as copies,
    ):
        copies.start()
        copies.await_copied(records // 10, COPY_SECONDS)
        trial.see_topic("__transaction_state")
        bounce(trial, ("__transaction_state", 0))
        copies.await_copied(records // 10, COPY_SECONDS)
        bounce(trial, ("target", 0))
        copies.await_copied(records // 10, COPY_SECONDS)
        trial.story.tell(f"SIGKILL to {copies.newest.name}")
        copies.newest.kill()
        zombie = copies.start()
        copies.await_copied(records // 10, COPY_SECONDS)
        copies.start()
        ended_with = zombie.await_failure(COPY_SECONDS)
        trial.story.tell(f"{zombie.name} ended with {ended_with}")
        assert ended_with.is_fatal, "it was not fenced"
        producer.await_acked_in_all(records, COPY_SECONDS)
        producer.stop()
        kafka_producer.stop()
        sends = [*producer.sends, *kafka_producer.sends]
        trial.story.within(
            COPY_SECONDS,
            f"all {len(sends)} records are copied, and read",
            lambda: copies.replaced_if_it_hangs() and len(reader.reads) >= len(sends),
            lambda: f"{len(reader.reads)} of them",
        )
        values = {send.value for send in sends}
        trial.story.within(COPY_SECONDS, "Kafka's consumer read them", lambda: kafka_reader.has_read(values))
        kafka_reader.stop()
        await_all_stable(trial, "target")
        copies.newest.stop()
    assert producer.errors == []
    history = History(sends=sends, moves=[*reader.moves, *kafka_reader.moves])
    copies.add_to(history)
    history.final = {**read_all(bootstrap, "source", PARTITIONS), **read_all(bootstrap, "target", PARTITIONS)}
    trial.story.judge(history)
    assert_exact(history)
    for topic in ("source", "target"):
        for partition in range(PARTITIONS):
            trial.brokers.assert_replicas_are_equal(topic, partition)


def bounce(trial: Trial, partition: Partition) -> None:
    """SIGKILL to its leader, and a start when another one leads."""
    killed = trial.watch.leader(partition)
    trial.kill(killed)
    trial.await_new_leader(partition, killed)
    trial.restart(killed)
    for topic in ("source", "target"):
        trial.await_in_sync(topic, PARTITIONS, seconds=FULL_IN_SYNC_SECONDS)


def await_all_stable(trial: Trial, topic: str) -> None:
    """The last stable offset of each partition reaches its end: no transaction is left open."""

    def ends(isolation: IsolationLevel) -> list[int]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, one): latest for one in range(PARTITIONS)}
        # A new one: it asks with the leader epochs that it knew first.
        admin = AdminClient({"bootstrap.servers": trial.brokers.bootstrap, "log_level": 0})
        told = admin.list_offsets(asked, isolation_level=isolation, request_timeout=WAIT_SECONDS)
        return [future.result(WAIT_SECONDS).offset for future in told.values()]

    trial.story.within(
        WAIT_SECONDS,
        "the last stable offsets reached the ends",
        lambda: ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED),
        lambda: f"{ends(IsolationLevel.READ_COMMITTED)} of {ends(IsolationLevel.READ_UNCOMMITTED)}",
    )


def assert_exact(history: History) -> None:
    """Every record once, each partition in its order."""
    for partition in range(PARTITIONS):
        given = list(history.final["source", partition].values())
        copied = [copied_value(value) for value in history.final["target", partition].values()]
        assert len(copied) == len(given), f"partition {partition}: {len(given)} records became {len(copied)}"
        wrong = next(((one, other) for one, other in zip(given, copied, strict=True) if one != other), None)
        assert wrong is None, f"partition {partition}: where {wrong[0]!r} was to be, {wrong[1]!r} is"
