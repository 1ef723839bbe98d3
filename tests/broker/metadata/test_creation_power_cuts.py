"""Topics of many partitions made while the power is cut: none is half there, and making one seldom waits for a disk."""

import os
from pathlib import Path
from random import Random

import pytest

from lamina.log.identity import read_topic_id
from tests.broker.in_process import InProcessBroker
from tests.broker.power_cuts import PowerCutBroker

pytestmark = pytest.mark.random

STORIES = range(max(int(os.environ.get("LAMINA_STORIES", "6")) // 10, 1))
PARTITIONS = 6
SYNCS = ("fsync", "sync_dir")


def syncs(broker: PowerCutBroker, since: int) -> int:
    return sum(op.kind in SYNCS for op in broker.disk.ops[since:])


def test_making_a_topic_waits_for_the_disk_as_often_for_many_partitions_as_for_one(tmp_path: Path) -> None:
    broker = PowerCutBroker(tmp_path, {})
    counts = []
    for name, partitions in (("one", 1), ("fifty", 50)):
        before = len(broker.disk.ops)
        broker.create(name, partitions=partitions)
        counts.append(syncs(broker, before))
    broker.close()
    assert counts == [3, 3], "the names of the directories, and the checkpoint with its name"


def written(broker: InProcessBroker, topic: str) -> list[int]:
    return [broker.produce(topic, 1, partition=index) for index in range(PARTITIONS)]


@pytest.mark.parametrize("seed", STORIES)
def test_a_topic_that_was_being_made_when_the_power_was_cut_is_there_whole_or_not_at_all(
    tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    broker = PowerCutBroker(tmp_path, {})
    for number in range(10):
        name = f"t{number}"
        before = len(broker.disk.ops)
        broker.create(name, partitions=PARTITIONS)
        made = len(broker.disk.ops)
        broker.cut_power(rng.randint(before, made + 1) if rng.random() < 0.8 else made, rng)
        topic = broker.parts.metadata.image.topics.get(name)
        if topic is not None:
            assert written(broker, name) == [0] * PARTITIONS
            path = broker.parts.directories[0].path
            ids = {read_topic_id(broker.disk, f"{path}/{name}-{index}") for index in range(PARTITIONS)}
            assert ids == {topic.id}
            broker.delete(name)
    broker.close()


@pytest.mark.parametrize("seed", STORIES)
def test_an_acknowledged_topic_and_what_was_flushed_into_it_survive_a_power_cut(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    broker = PowerCutBroker(tmp_path, {})
    for number in range(5):
        name = f"t{number}"
        broker.create(name, partitions=PARTITIONS)
        flushed = rng.sample(range(PARTITIONS), 2)
        for index in flushed:
            broker.produce(name, 1, partition=index)
        broker.parts.directories[0].write_recovery_points()
        broker.cut_power(len(broker.disk.ops), rng)
        assert written(broker, name) == [int(index in flushed) for index in range(PARTITIONS)]
        broker.delete(name)
    broker.close()


def test_a_nameless_directory_is_not_taken_back_where_another_one_holds_the_partition(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": f"{one},{two}"})
    broker.create("t", partitions=2)
    assert broker.produce("t", 3, partition=1) == 0
    (path,) = (where / "t-1" for where in (one, two) if (where / "t-1").exists())
    other = (two if path.parent == one else one) / "t-1"
    broker.close()
    checkpoint = other.parent / "recovery-point-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()
    checkpoint.write_text("\n".join([lines[0], str(int(lines[1]) + 1), *lines[2:], "t 1 0", ""]))
    other.mkdir()
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": f"{one},{two}"})
    assert broker.produce("t", 1, partition=1) == 3
    assert str(other) in broker.parts.unknown
    assert list(other.iterdir()) == []
    broker.close()
