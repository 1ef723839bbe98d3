"""Replicas that other brokers keep from now on: out of service, off the disk, and told of; and those that come back."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.metadata.applied import Applied
from lamina.errors import NotLeaderOrFollower
from lamina.image.changes import set_partitions
from lamina.image.image import Image
from lamina.image.topic import Partition as PartitionState
from lamina.log.files import Disk
from lamina.log.truncation import Truncation
from lamina.storage import METADATA_DB
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore
from tests.broker.in_process import InProcessBroker

KEY = ("t", 0)


def a_broker(tmp_path: Path, **settings: str) -> InProcessBroker:
    """With a topic of two partitions, and records in the first."""
    broker = InProcessBroker(tmp_path / "data", {name.replace("_", "."): value for name, value in settings.items()})
    broker.create("t", partitions=2)
    for _ in range(2):
        broker.produce("t", 3)
    return broker


def changed(image: Image, index: int = 0, **state: Any) -> Image:
    return set_partitions(image, {("t", index): replace(image.partition("t", index), **state)})


def given_to_others(image: Image, index: int = 0) -> Image:
    epoch = image.partition("t", index).leader_epoch + 1
    return changed(image, index, replicas=(2, 3), leader=2, isr=(2, 3), leader_epoch=epoch)


def apply(broker: InProcessBroker, new: Image) -> Applied:
    return broker.parts.loop.run_until_complete(broker.parts.publisher.apply(broker.parts.metadata.image, new))


def state(broker: InProcessBroker, index: int = 0) -> PartitionState:
    return broker.parts.metadata.image.partition("t", index)


def directories(tmp_path: Path) -> list[str]:
    return [name for name in every_directory(tmp_path) if not name.endswith("-delete")]


def every_directory(tmp_path: Path) -> list[str]:
    """Of the topic. Others may be removed while this looks, which ``glob`` does not expect."""
    return sorted(name for _, names, _ in os.walk(tmp_path) for name in names if name.startswith("t-"))


def test_a_replica_that_others_keep_from_now_on_is_closed_and_deleted(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, log_segment_delete_delay_ms="0")
    left = broker.parts.partitions.get("t", 0)
    applied = apply(broker, given_to_others(broker.parts.metadata.image))
    assert (applied.removed, applied.made, applied.lost) == ([KEY], [], [])
    with pytest.raises(NotLeaderOrFollower, match="no replica of t-0"):
        broker.parts.partitions.get("t", 0)
    assert (left.leader, left.follower) == (None, None)
    assert directories(tmp_path) == ["t-1"]
    broker.run_until(lambda: every_directory(tmp_path) == ["t-1"])
    assert "t" in broker.parts.counters.topics, "the other partition is here"
    apply(broker, given_to_others(broker.parts.metadata.image, 1))
    assert "t" not in broker.parts.counters.topics
    broker.close()


def test_a_replica_that_leads_is_never_deleted(tmp_path: Path) -> None:
    """Whatever its replicas are said to be."""
    broker = a_broker(tmp_path)
    applied = apply(broker, changed(broker.parts.metadata.image, replicas=(2, 3)))
    assert applied.removed == []
    assert directories(tmp_path) == ["t-0", "t-1"]
    broker.close()


def test_a_follower_that_others_replace_follows_nobody_any_more(tmp_path: Path) -> None:
    broker = a_broker(tmp_path)
    image = broker.parts.metadata.image
    apply(broker, changed(image, replicas=(1, 2), leader=2, isr=(1, 2), leader_epoch=7))
    follower = broker.parts.partitions.get("t", 0)
    assert follower.follower is not None
    apply(broker, changed(broker.parts.metadata.image, replicas=(2, 3), leader=2, isr=(2,), leader_epoch=8))
    assert follower.follower is None
    broker.close()


def test_what_is_in_a_failed_directory_is_not_told_to_be_gone(tmp_path: Path) -> None:
    broker = a_broker(tmp_path)
    broker.parts.directories[0].fail(OSError(errno.EIO, "the disk is gone"))
    assert apply(broker, given_to_others(broker.parts.metadata.image)).removed == []
    assert directories(tmp_path) == ["t-0", "t-1"]
    broker.close()


def test_a_directory_that_fails_meanwhile_keeps_it_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = a_broker(tmp_path)

    def fail(_disk: Disk, old: str, _new: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), old)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "rename", fail)
        assert apply(broker, given_to_others(broker.parts.metadata.image)).removed == []
    assert broker.parts.directories[0].failure is not None, "the test breaks what it means to break"
    broker.close()


@pytest.mark.parametrize("is_topic_deleted", [False, True])
def test_a_log_that_is_being_cut_is_cut_to_the_end_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_topic_deleted: bool
) -> None:
    """Its files would not be found under their names: that looks like a disk that has failed."""
    broker, may_cut, cut_file = a_broker(tmp_path), threading.Event(), Truncation.cut_file
    truncations = broker.parts.publisher.truncations
    apply(broker, changed(broker.parts.metadata.image, replicas=(1, 2), leader=2, isr=(1, 2), leader_epoch=7))
    partition = broker.parts.partitions.get("t", 0)

    def wait_and_cut(self: Truncation) -> None:
        may_cut.wait(30)
        cut_file(self)

    monkeypatch.setattr(Truncation, "cut_file", wait_and_cut)
    truncating = broker.parts.loop.create_task(truncations.truncate(partition, 3))
    broker.run_until(lambda: partition.log.is_truncating)
    image = broker.parts.metadata.image
    gone = given_to_others(image)
    if is_topic_deleted:
        gone = replace(image, topics={"t": replace(image.topics["t"], is_being_deleted=True)})
    applying = broker.parts.loop.create_task(broker.parts.publisher.apply(image, gone))
    for _ in range(20):
        broker.turn()
    assert "t-0" in directories(tmp_path)
    may_cut.set()
    broker.finish(applying)
    broker.finish(truncating)
    assert "t-0" not in directories(tmp_path)
    assert broker.parts.directories[0].failure is None
    broker.close()


# Again


def test_a_replica_again_after_its_removal_was_told_is_made_anew(tmp_path: Path) -> None:
    broker = a_broker(tmp_path)
    apply(broker, changed(given_to_others(broker.parts.metadata.image), made_on=(2, 3)))
    again = changed(broker.parts.metadata.image, replicas=(2, 3, 1), adding=(1,))
    assert apply(broker, again).made == [KEY]
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0
    broker.close()


def test_a_replica_again_before_the_controller_knows_of_its_removal_is_lost_until_then(tmp_path: Path) -> None:
    """Then it is made anew: nothing stands for what it has deleted."""
    broker = a_broker(tmp_path)
    apply(broker, given_to_others(broker.parts.metadata.image))
    again = changed(broker.parts.metadata.image, replicas=(2, 3, 1), adding=(1,))
    assert state(broker).made_on == (1,)
    applied = apply(broker, again)
    assert (applied.made, applied.lost) == ([], [KEY])
    applied = apply(broker, changed(again, made_on=(2, 3)))
    assert (applied.made, applied.lost) == ([KEY], [])
    broker.close()


def test_a_replica_that_goes_and_comes_in_one_change_stays(tmp_path: Path) -> None:
    broker = a_broker(tmp_path)
    here, image = broker.parts.partitions.get("t", 0), broker.parts.metadata.image
    again = changed(given_to_others(image), replicas=(2, 3, 1), adding=(1,))
    assert apply(broker, again).removed == []
    assert broker.parts.partitions.get("t", 0) is here
    assert here.log.log_end_offset == 6
    broker.close()


# At the start


def test_a_directory_that_was_made_and_not_told_of_is_told_when_the_broker_starts(tmp_path: Path) -> None:
    """Whoever does not know of it would take it for new when it is lost."""
    broker = a_broker(tmp_path)
    broker.close()
    database = SqliteStore(str(tmp_path / "data" / METADATA_DB))
    store = MetadataStore(database, "unused")
    topic = store.image.topics["t"]
    unmade = tuple(replace(one, made_on=()) for one in topic.partitions)
    store.save(replace(store.image, topics={"t": replace(topic, partitions=unmade)}))
    database.close()
    broker.start()
    assert [one.made_on for one in broker.parts.metadata.decided.topics["t"].partitions] == [(1,), (1,)]
    broker.close()
