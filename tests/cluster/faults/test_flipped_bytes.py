"""F12: a byte flips in a closed segment of a leader, and of a follower: readers, followers and the cleaner notice."""

import json
import os
import shutil
import urllib.request
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from lamina.records.batch import walk
from tests.cluster.faults.checking_readers import READERS, Reader, Reading, read_with_librdkafka
from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.trial import Trial
from tests.cluster.faults.written_records import KEYS, WrittenRecords, write_records
from tests.cluster.three_brokers import ALL, WAIT_SECONDS
from tests.history.events import Partition

pytestmark = MARKS

SETTINGS = {"replica.lag.time.max.ms": "2500", "log.cleaner.backoff.ms": "500"}
CONFIGS = {"internal_segment_bytes": "200000", "file_delete_delay_ms": "1000"}
NOTICED_SECONDS = 30.0
CLEANED_SECONDS = 240.0
"""The first pass on a machine compiles the kernels."""


class Flipped(NamedTuple):
    """A batch of which one byte is another one than was written."""

    path: Path
    position: int
    base_offset: int


def test_f12_a_byte_of_a_closed_segment_flips(new_trial: NewTrial) -> None:
    """In partition 0 on the leader, in partition 1 on a follower, and on the leader of a topic to be compacted."""
    trial = new_trial(SETTINGS)
    leader = trial.random.choice(ALL)
    # The follower is the first that takes over.
    follower, other = (broker_id for broker_id in ALL if broker_id != leader)
    trial.create_topic("t")
    trial.create_topic("plain", 2, [leader, leader], **CONFIGS)
    for topic in ("keyed", "whole"):
        trial.create_topic(topic, 1, [leader], **CONFIGS)
    bootstrap = trial.brokers.bootstrap
    plain = write_records(bootstrap, "plain", 2)
    keyed, whole = (write_records(bootstrap, topic) for topic in ("keyed", "whole"))
    with trial.load("t"):
        of_leader, of_keyed = flip(trial, leader, "plain", 0), flip(trial, leader, "keyed", 0)
        of_follower = flip(trial, follower, "plain", 1)
        copy_anew(trial, other, of_leader)
        compact(trial, "keyed", "whole")
        assert_noticed_by_readers(trial, "plain", 0, plain)
        assert_read_in_full(trial, "plain", 1, plain)
        assert_never_replicated(trial, other, of_leader)
        for broker_id in ALL:
            await_outcome(trial, broker_id, "whole", "cleaned")
            await_outcome(trial, broker_id, "keyed", "uncleanable" if broker_id == leader else "cleaned")
        assert_noticed_by_readers(trial, "keyed", 0, keyed)
        trial.stop(leader)
        trial.await_in_sync("plain", 1, {follower, other})
        assert_read_in_full(trial, "plain", 0, plain)
        assert_noticed_by_readers(trial, "plain", 1, plain)
        assert_latest_values_are_read(trial, "keyed", keyed)
        mend(trial, leader, of_leader, of_keyed)
        trial.await_in_sync("plain", 2)
        trial.stop(follower)
        assert_read_in_full(trial, "plain", 1, plain)
        mend(trial, follower, of_follower)
        trial.await_in_sync("plain", 2)
        for topic, written in (("keyed", keyed), ("whole", whole)):
            trial.await_in_sync(topic, 1)
            assert_latest_values_are_read(trial, topic, written)
    for partition in range(2):
        trial.brokers.assert_replicas_are_equal("plain", partition)


def flip(trial: Trial, broker_id: int, topic: str, partition: int) -> Flipped:
    """The last bit of a byte inside a value, so that only the CRC tells."""
    log = min(trial.brokers.replica(broker_id, topic, partition).glob("*.log"))
    data = log.read_bytes()
    batches = list(walk(data))
    position, header = batches[len(batches) // 2]
    at = position + header.size_bytes - 20
    with log.open("rb+") as file:
        os.pwrite(file.fileno(), bytes([data[at] ^ 1]), at)
    trial.story.tell(
        f"broker {broker_id}: {log.parent.name}/{log.name} has another byte at {at}, in the batch of offsets "
        f"{header.base_offset} to {header.last_offset}"
    )
    return Flipped(log, position, header.base_offset)


def read_with(read: Reader, trial: Trial, topic: str, partition: int) -> Reading:
    reading = read(trial.brokers.bootstrap, topic, partition)
    trial.story.tell(f"{read.__name__} {topic}-{partition}: {len(reading.values)} values, {reading.complaint!r}")
    return reading


def assert_noticed_by_readers(trial: Trial, topic: str, partition: int, written: WrittenRecords) -> None:
    """Each complains, and was given nothing that was not written."""
    values = set(written[partition].values())
    for read in READERS:
        reading = read_with(read, trial, topic, partition)
        assert reading.complaint
        assert set(reading.values) <= values


def assert_read_in_full(trial: Trial, topic: str, partition: int, written: WrittenRecords) -> None:
    reading = read_with(read_with_librdkafka, trial, topic, partition)
    assert not reading.complaint
    assert reading.values == [value for _, value in sorted(written[partition].items())]


def assert_latest_values_are_read(trial: Trial, topic: str, written: WrittenRecords) -> None:
    """Of each key, whatever else there is of what was written."""
    in_order = [value for _, value in sorted(written[0].items())]
    reading = read_with(read_with_librdkafka, trial, topic, 0)
    assert not reading.complaint
    assert set(in_order[-KEYS:]) <= set(reading.values) <= set(in_order)


def copy_anew(trial: Trial, broker_id: int, damaged: Flipped) -> None:
    """Another broker loses its replica, and starts without it."""
    trial.stop(broker_id)
    shutil.rmtree(trial.brokers.replica(broker_id, *place_of(damaged)))
    trial.restart(broker_id)


def assert_never_replicated(trial: Trial, broker_id: int, damaged: Flipped) -> None:
    """Who copies gets nothing of the damaged batch, says why, and is not in sync."""
    place = place_of(damaged)
    complaint = f"{place[0]}-{place[1]}: fetch failed, retrying: the batch at offset {damaged.base_offset} has CRC"
    trial.story.within(
        NOTICED_SECONDS, complaint, lambda: any(complaint in line for line in trial.brokers.log_lines(broker_id))
    )
    assert len(trial.brokers.records(broker_id, *place)) <= damaged.position
    assert broker_id not in trial.watch.in_sync(place)


def place_of(damaged: Flipped) -> Partition:
    topic, _, partition = damaged.path.parent.name.rpartition("-")
    return topic, int(partition)


def compact(trial: Trial, *topics: str) -> None:
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry]) for topic in topics]
    for future in trial.brokers.admin.incremental_alter_configs(resources).values():
        future.result(WAIT_SECONDS)


def await_outcome(trial: Trial, broker_id: int, topic: str, outcome: str) -> None:
    """Of the passes over a topic there was this, and no other one."""

    def outcomes() -> set[str]:
        (address,) = (
            one.started.admin_address
            for one in trial.brokers.cluster.brokers()
            if one.id == broker_id and one.started is not None
        )
        with urllib.request.urlopen(f"http://{address}/v1/cleaner/history?topic={topic}", timeout=30) as response:
            return {one["outcome"] for one in json.load(response)["passes"]}

    trial.story.within(CLEANED_SECONDS, f"broker {broker_id}: {topic} {outcome}", outcomes)
    assert outcomes() == {outcome}


def mend(trial: Trial, broker_id: int, *damaged: Flipped) -> None:
    """A broker that has stopped: `lamina verify` names exactly these batches, and their replicas are copied anew."""
    found = {(one.path, one.position) for one in trial.damage(broker_id)}
    assert found == {(str(one.path), one.position) for one in damaged}
    for one in damaged:
        shutil.rmtree(one.path.parent)
    trial.restart(broker_id)
