"""F6 and F7: too few replicas in sync, and all brokers killed at once, with files torn meanwhile."""

from pathlib import Path

from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.raw_producer import NOT_ENOUGH_REPLICAS, RawProducer
from tests.cluster.faults.trial import ELECTED_SECONDS, FULL_IN_SYNC_SECONDS, Trial
from tests.cluster.three_brokers import ALL
from tests.cluster.verifiable_consumer import read_all

pytestmark = MARKS

T = ("t", 0)
OUTAGES = 3
DOWN_SECONDS = 10.0


def test_f6_two_of_three_brokers_are_killed(new_trial: NewTrial) -> None:
    """What is left refuses writes and serves reads, and goes on by itself when the others are back."""
    trial = new_trial()
    trial.create_topic("t")
    with trial.load("t") as load:
        load.producer.await_acked(1000)
        left = trial.watch.leader(T)
        others = [broker_id for broker_id in ALL if broker_id != left]
        trial.kill(*others)
        trial.await_in_sync("t", 1, {left}, 3 * ELECTED_SECONDS)
        committed = {send.value for send in load.producer.acked}
        raw = RawProducer(trial.brokers.address(left), T, -1, "refused", trial.story)
        raw.send()
        error = raw.answer()
        assert error == NOT_ENOUGH_REPLICAS, f"one of three replicas is in sync, and a write was answered with {error}"
        found = set(read_all(trial.brokers.bootstrap, "t")[T].values())
        missing = committed - found
        assert not missing, f"{len(missing)} committed records cannot be read, {min(missing)!r} among them"
        load.other_sends += raw.sends
        trial.wait(DOWN_SECONDS)
        trial.restart(*others)
        back_ms = trial.story.now_ms()
        trial.await_in_sync("t", 1, ALL, FULL_IN_SYNC_SECONDS)
        trial.await_resumed(load.producer, 0, back_ms)
    trial.brokers.assert_replicas_are_equal("t")


def test_f7_all_brokers_are_killed_at_once_and_files_are_torn(new_trial: NewTrial) -> None:
    """On one of them the last batch is torn, on another the indexes are cut: what is acknowledged is on the third."""
    trial = new_trial()
    trial.create_topic("t", 2, segment_bytes="1048576")
    with trial.load("t", 2, value_bytes=1000) as load:
        for _ in range(OUTAGES):
            load.producer.await_acked(2000)
            at_ms = trial.kill(*ALL)
            order = trial.random.sample(ALL, len(ALL))
            torn, cut, whole = trial.random.sample(ALL, len(ALL))
            for partition in range(2):
                tear_the_last_batch(trial, torn, partition)
                cut_the_indexes(trial, cut, partition)
            trial.story.tell(f"broker {whole} has everything; they start in the order {order}")
            ends = {broker_id: log_bytes(trial, broker_id) for broker_id in ALL}
            trial.restart(*order)
            trial.await_in_sync("t", 2)
            trial.await_resumed(load.producer, 0, at_ms, 60)
            shorter = {one: (ends[one], log_bytes(trial, one)) for one in ALL if log_bytes(trial, one) < ends[one]}
            assert shorter == {}, f"logs became shorter, of broker: (before, after) bytes {shorter}"
    for partition in range(2):
        trial.brokers.assert_replicas_are_equal("t", partition)


def newest(trial: Trial, broker_id: int, partition: int, suffix: str) -> Path:
    return max(trial.brokers.replica(broker_id, "t", partition).glob(f"*{suffix}"))


def newest_written(trial: Trial, broker_id: int, partition: int) -> Path:
    """The newest segment may have just begun."""
    logs = trial.brokers.replica(broker_id, "t", partition).glob("*.log")
    return max(log for log in logs if log.stat().st_size)


def log_bytes(trial: Trial, broker_id: int) -> int:
    return sum(len(trial.brokers.records(broker_id, "t", partition)) for partition in range(2))


def tear_the_last_batch(trial: Trial, broker_id: int, partition: int) -> None:
    log = newest_written(trial, broker_id, partition)
    size, removed = log.stat().st_size, trial.random.randint(1, 60)
    with log.open("rb+") as file:
        file.truncate(size - removed)
    trial.story.tell(f"broker {broker_id}: {log.parent.name}/{log.name} had {size} bytes, and lost the last {removed}")


def cut_the_indexes(trial: Trial, broker_id: int, partition: int) -> None:
    """Somewhere in their entries. What follows these in a segment that is written to is zeros."""
    for suffix in (".index", ".timeindex"):
        index = newest(trial, broker_id, partition, suffix)
        used = len(index.read_bytes().rstrip(b"\0"))
        left = trial.random.randint(0, used)
        with index.open("rb+") as file:
            file.truncate(left)
        trial.story.tell(f"broker {broker_id}: {index.parent.name}/{index.name} had {used} bytes, and has {left}")
