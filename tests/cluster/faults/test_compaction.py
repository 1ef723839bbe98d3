"""F11: a compacted topic is cleaned on all brokers all the time, while leaders are killed and followers are cut off."""

import os
import re
import urllib.request
from datetime import timedelta
from typing import Any, NamedTuple

from lamina.clocks import SYSTEM_CLOCKS
from lamina.wire.building import build_request
from tests.broker.raw import RawClient, batch_of
from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.keyed_writer import KeyedWriter, latest_values
from tests.cluster.faults.raw_producer import NO_ERROR, Address
from tests.cluster.faults.replica_log import committed_records, latest_of_each_key
from tests.cluster.faults.trial import Trial
from tests.cluster.three_brokers import ALL
from tests.cluster.verifiable_consumer import read_all
from tests.history.events import History, TransactionOutcome

pytestmark = MARKS

T = ("t", 0)
LOOP_SECONDS = float(os.environ.get("LAMINA_FAULT_LOOP_SECONDS", "300"))
KEYS = 1000
PER_SECOND = 400
VALUE_BYTES = 100
CUT_SECONDS = 8.0
CLEANED_SECONDS = 120.0
CLEANED_PASSES = 3
DELETE_RETENTION_MS = 15_000
"""Longer than a broker is away: a replica that comes back after a tombstone was removed elsewhere never hears of it."""
SETTINGS = {
    "replica.lag.time.max.ms": "2500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
CONFIGS = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "200000",
    "delete_retention_ms": str(DELETE_RETENTION_MS),
    "file_delete_delay_ms": "1000",
}
INIT_PRODUCER_ID = 22


class OneBatch(NamedTuple):
    """Of an idempotent producer that sends nothing else."""

    data: bytes
    base_offset: int


def test_f11_a_log_is_cleaned_everywhere_while_brokers_fail(new_trial: NewTrial) -> None:
    trial = new_trial(SETTINGS)
    trial.create_topic("t", 1, None, **CONFIGS)
    plain, transactional = writers = [
        KeyedWriter(
            trial.brokers.bootstrap,
            "t",
            KEYS,
            PER_SECOND,
            VALUE_BYTES,
            trial.random.getrandbits(32),
            trial.story,
            name,
            is_transactional=name == "transactional",
        )
        for name in ("plain", "transactional")
    ]
    with (
        trial.consumer("t") as reader,
        trial.kafka_consumer("t") as kafka_reader,
        trial.kafka_producer("t") as kafka_producer,
        plain,
        transactional,
    ):
        once = write_one_batch(trial)
        until_ms = trial.story.now_ms() + LOOP_SECONDS * 1000
        while trial.story.now_ms() < until_ms:
            trial.wait(5)
            kill_the_leader(trial)
            trial.wait(5)
            cut_off_a_follower(trial)
        trial.story.within(
            CLEANED_SECONDS,
            f"every broker cleaned {CLEANED_PASSES} times since its last start",
            lambda: min(cleaned_passes(trial).values()) >= CLEANED_PASSES,
            lambda: cleaned_passes(trial),
        )
        kafka_producer.stop()
        kafka_reader.stop()
    assert [writer.errors for writer in writers] == [[], []]
    for broker_id in ALL:
        trial.restart(broker_id)
        trial.await_in_sync("t", 1)
    again = produce(trial, once.data)
    assert again == once.base_offset, f"the batch at {once.base_offset} was sent again, and is at {again}"
    latest = latest_values(writers) | kafka_producer.latest_values()
    history = History(kafka_producer.sends, [*reader.moves, *kafka_reader.moves], compacted={"t"})
    judge(trial, writers, history, latest)
    trial.brokers.close()
    check_replicas(trial, writers, latest)


def kill_the_leader(trial: Trial) -> None:
    killed = trial.watch.leader(T)
    trial.kill(killed)
    trial.await_new_leader(T, killed)
    trial.restart(killed)
    trial.await_in_sync("t", 1)


def cut_off_a_follower(trial: Trial) -> None:
    """From the other brokers; not the controller, through which the leader drops it."""
    leader, controller = trial.watch.leader(T), trial.watch.controller
    follower = trial.random.choice([one for one in ALL if one not in (leader, controller)])
    others = [one for one in ALL if one != follower]
    trial.isolate(follower, others, from_zookeeper=False)
    trial.wait(CUT_SECONDS)
    trial.heal()
    trial.await_in_sync("t", 1)


def cleaned_passes(trial: Trial) -> dict[int, int]:
    """By broker, since its start."""
    found: dict[int, int] = {}
    for broker in trial.brokers.cluster.brokers():
        assert broker.started is not None
        with urllib.request.urlopen(f"http://{broker.started.admin_address}/metrics", timeout=30) as response:
            text = response.read().decode()
        count = re.search(r'^lamina_cleaner_passes_total\{outcome="cleaned"\} (\S+)', text, re.MULTILINE)
        found[broker.id] = int(float(count[1])) if count else 0
    return found


def write_one_batch(trial: Trial) -> OneBatch:
    """Its key is written again and again by others: compaction removes the record, and has to know the batch."""
    with RawClient(Address(trial.brokers.address(trial.watch.leader(T)))) as client:
        facts: dict[str, Any] = {"transactional_id": None, "transaction_timeout": timedelta(minutes=1)}
        given = client.ask(build_request(INIT_PRODUCER_ID, 4, {**facts, "producer_id": -1, "producer_epoch": -1}))
    assert given.error_code == NO_ERROR, given
    data = batch_of(
        (b"key-0", None),
        now_ms=SYSTEM_CLOCKS.now_ms(),
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch,
        base_sequence=0,
    )
    return OneBatch(data, produce(trial, data))


def produce(trial: Trial, data: bytes) -> int:
    """Returns where it is."""
    with RawClient(Address(trial.brokers.address(trial.watch.leader(T)))) as client:
        told = client.produce("t", data)
    assert told.error_code == NO_ERROR, told
    return int(told.base_offset)


def judge(trial: Trial, writers: list[KeyedWriter], history: History, latest: dict[bytes, bytes]) -> None:
    for writer in writers:
        writer.add_to(history)
        outcomes = list(writer.outcomes.values())
        trial.story.tell(
            f"{len(writer.written)} records written, {outcomes.count(TransactionOutcome.ABORTED)} transactions aborted"
        )
    history.final = read_all(trial.brokers.bootstrap, "t")
    trial.story.judge(history)
    missing = sorted(set(latest.values()) - set(history.final[T].values()))
    assert missing == [], f"readers do not find {len(missing)} latest values, {missing[0]!r} among them"


def check_replicas(trial: Trial, writers: list[KeyedWriter], model: dict[bytes, bytes]) -> None:
    """What is on each disk, when all have stopped."""
    aborted = {one.value for writer in writers for one in writer.written if one.value and not writer.is_committed(one)}
    for broker_id in ALL:
        replica = trial.brokers.replica(broker_id, "t")
        left = [path.name for path in replica.iterdir() if path.suffix in (".cleaned", ".swap")]
        assert left == [], f"broker {broker_id}: {left}"
        records = committed_records(replica)
        seen = [record for record in records if record.value is not None and record.value.rstrip() in aborted]
        assert seen == [], f"broker {broker_id}: {seen[0].value!r} at {seen[0].offset} was aborted"
        found = latest_of_each_key(records)
        pairs = {key: (model.get(key), found.get(key)) for key in model.keys() | found.keys()}
        wrong = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        trial.story.tell(
            f"broker {broker_id}: {len(records)} records for {len(found)} keys, {len(wrong)} of them wrong"
        )
        assert wrong == {}, (
            f"broker {broker_id}: keys with (what it should be, what it is): {dict(list(wrong.items())[:5])}"
        )
