"""Partitions that come and go, on disks that fail meanwhile or hold what nobody knows."""

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import pytest

from lamina.broker.partitions import log_directories, removal
from lamina.broker.partitions.partition import Partition
from lamina.broker.turns import Turns
from lamina.errors import ErrorCode, StorageError
from lamina.image.changes import remove_topic, set_partitions
from lamina.image.image import Image
from lamina.log import offset_checkpoints
from lamina.log.checkpoints import RECOVERY_POINT, read_offsets
from lamina.log.files import Disk
from lamina.log.flushing import flush
from lamina.log.truncation import Truncation
from tests.broker.broken_disk import break_paths
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of, counted_turns

METADATA = 3


def two_directories(tmp_path: Path) -> InProcessBroker:
    return InProcessBroker(tmp_path / "data", {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"})


def error_of_produce(broker: InProcessBroker, topic: str, partition: int) -> int:
    data = {"index": partition, "records": batch_of(broker, 1)}
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": topic, "partition_data": [data]}])
    return int(response.responses[0].partition_responses[0].error_code)


def shown_partitions(broker: InProcessBroker, topic: str) -> int:
    found = broker.ask(METADATA, 9, topics=[{"name": topic}]).topics[0]
    assert found.error_code == ErrorCode.NONE
    return len(found.partitions)


@pytest.mark.parametrize(
    "is_broken",
    [
        lambda path: path.endswith("/one/t-2"),
        lambda path: path.endswith("/one/t-2/partition.metadata.tmp"),
        lambda path: "/one/t-2/" in path and "partition.metadata" not in path,
    ],
    ids=["making", "identity", "opening"],
)
def test_partitions_of_a_directory_that_fails_while_they_are_made_go_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[str], bool]
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        break_paths(patch, is_broken)
        broker.create("t", partitions=4)
    assert broker.parts.directories[0].failure is not None, "the test breaks what it means to break"
    assert shown_partitions(broker, "t") == 4
    assert [broker.produce("t", 1, partition=index) for index in range(4)] == [0, 0, 0, 0]
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(4)] == [1, 1, 1, 1], "the right ones are found"
    broker.close()


def test_partitions_that_were_made_when_their_directory_failed_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path.startswith(f"{tmp_path}/one/recovery-point-offset-checkpoint"))
        broker.create("t", partitions=2)
    assert shown_partitions(broker, "t") == 2
    assert [error_of_produce(broker, "t", index) for index in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [0, 1]
    broker.close()


def test_partitions_that_no_directory_can_take_answer_with_a_storage_error_until_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("old")
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: "/t-" in path)
        broker.create("t", partitions=2)
    assert shown_partitions(broker, "t") == 2
    assert [error_of_produce(broker, "t", index) for index in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [0, 0]
    broker.close()


def open_again(broker: InProcessBroker) -> None:
    broker.parts.loop.run_until_complete(broker.parts.participant.make_waiting())


def without_descriptors(monkeypatch: pytest.MonkeyPatch, *logs: str) -> None:
    """None is left to open files of these logs with."""
    paths = tuple(f"/{log}/0000" for log in logs)
    break_paths(monkeypatch, lambda path: any(part in path for part in paths), errno.EMFILE)


def test_new_partitions_that_find_no_descriptors_are_opened_when_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        without_descriptors(patch, "t-0", "t-1")
        broker.create("t", partitions=2)
        assert [error_of_produce(broker, "t", index) for index in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        with pytest.raises(StorageError, match=r"^t-1 cannot be opened for now and is tried again: .*Too many open"):
            broker.parts.partitions.get("t", 1)
        assert broker.parts.partitions.offline("t") == {0, 1}
        caplog.clear()
        open_again(broker)
        assert [record.message for record in caplog.records if record.name.endswith("replicas")] == [], "said once"
    with monkeypatch.context() as patch:
        without_descriptors(patch, "t-1")
        open_again(broker)
    assert [error_of_produce(broker, "t", index) for index in range(2)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    open_again(broker)
    assert broker.parts.partitions.offline("t") == frozenset()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [1, 0]
    assert all(1 in partition.made_on for partition in broker.parts.metadata.decided.topics["t"].partitions)
    assert [directory.failure for directory in broker.parts.directories] == [None, None]
    assert len([path for name in ("one", "two") for path in (tmp_path / name).glob("t-*")]) == 2
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [2, 1]
    broker.close()


def test_partitions_that_wait_for_descriptors_go_with_their_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        without_descriptors(patch, "t-0", "t-1")
        broker.create("t", partitions=2)
    broker.delete("t")
    open_again(broker)
    assert broker.parts.partitions.find("t", 0) is None
    assert [path for name in ("one", "two") for path in (tmp_path / name).glob("t-[01]")] == []
    broker.create("t", partitions=2)
    assert broker.produce("t", 1, partition=1) == 0
    broker.close()


@pytest.mark.parametrize("fails_before", [True, False])
def test_partitions_that_wait_for_descriptors_in_a_directory_that_fails_go_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_before: bool
) -> None:
    broker = two_directories(tmp_path)
    with monkeypatch.context() as patch:
        without_descriptors(patch, "t-0", "t-1")
        broker.create("t", partitions=2)
    if fails_before:
        broker.parts.directories[0].fail(OSError(errno.EIO, "the disk is gone"))
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path.startswith(f"{tmp_path}/one/t-"))
        open_again(broker)
    assert broker.parts.directories[0].failure is not None
    open_again(broker)
    assert [broker.produce("t", 1, partition=index) for index in range(2)] == [0, 0]
    broker.close()


def test_a_log_that_finds_no_descriptors_when_the_broker_starts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=2)
    broker.close()
    with monkeypatch.context() as patch:
        without_descriptors(patch, "t-1")
        broker = two_directories(tmp_path)
    with pytest.raises(StorageError, match=r"^t-1 cannot be used: .* cannot open files for now: .*Too many open files"):
        broker.parts.partitions.get("t", 1)
    assert broker.produce("t", 1, partition=0) == 0
    broker.restart()
    assert broker.produce("t", 1, partition=1) == 0
    broker.close()


def test_a_new_topic_takes_nothing_over_from_a_directory_of_its_name_that_was_another_topics(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path / "data", {})
    broker.create("old", partitions=2)
    for index in range(2):
        broker.produce("old", 3, partition=index)
    logs = Path(broker.parts.directories[0].path)
    broker.close()
    for index in range(2):
        shutil.copytree(logs / f"old-{index}", logs / f"new-{index}")
    (logs / "new-1" / "partition.metadata").unlink()
    broker.start()
    broker.create("new", partitions=2)
    assert [broker.produce("new", 1, partition=index) for index in range(2)] == [0, 0]
    strays = sorted(path.name for path in logs.iterdir() if path.name.endswith("-stray"))
    assert [name.partition(".")[0] for name in strays] == ["new-0", "new-1"], "and what was there is kept"
    broker.restart()
    assert [broker.produce("new", 1, partition=index) for index in range(2)] == [1, 1]
    broker.close()


def test_a_topic_that_is_gone_though_nobody_deleted_it_is_set_aside_with_its_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An ensemble that was restored from an old copy does not know it; an image of a deletion records its id."""
    broker = InProcessBroker(tmp_path / "data", {})
    for name in ("forgotten", "deleted"):
        broker.create(name, partitions=2)
        broker.produce(name, 3, partition=1)
    logs, image = Path(broker.parts.directories[0].path), broker.parts.metadata.image
    kept = (logs / "forgotten-1" / "00000000000000000000.log").read_bytes()
    recorded = {image.topics["deleted"].id: (1,)}
    gone = replace(remove_topic(image, "forgotten", "deleted"), deletions=recorded)
    applied = broker.parts.loop.run_until_complete(broker.parts.publisher.apply(image, gone))
    assert [topic.name for topic in applied.deleted] == ["deleted"]
    assert len(broker.parts.partitions) == 0
    assert sorted(path.name for path in logs.glob("*-[01]")) == ["forgotten-0", "forgotten-1"]
    assert (logs / "forgotten-1" / "00000000000000000000.log").read_bytes() == kept
    (told,) = [line for line in caplog.messages if "forgotten" in line]
    assert told == (
        "topic forgotten is gone from the metadata and its deletion is not recorded there: "
        f"{logs}/forgotten-0, {logs}/forgotten-1 are kept, and nobody uses them"
    )
    broker.close()


def test_a_replica_that_is_here_is_not_made_again_though_the_metadata_has_forgotten_that_it_was_made(
    tmp_path: Path,
) -> None:
    """As that of an old copy of the cluster's store has."""
    broker = two_directories(tmp_path)
    broker.create("t", partitions=1)
    broker.produce("t", 3)
    here, image = broker.parts.partitions.find("t", 0), broker.parts.metadata.image
    topic = image.topics["t"]
    unmade = replace(topic, partitions=(replace(topic.partitions[0], made_on=()),))
    forgotten = replace(image, topics={**image.topics, "t": unmade})
    applied = broker.parts.loop.run_until_complete(broker.parts.publisher.apply(image, forgotten))
    assert broker.parts.partitions.find("t", 0) is here
    assert len(list(tmp_path.glob("*/t-0"))) == 1
    assert applied.made == [("t", 0)], "told again"
    broker.close()


def test_a_topic_goes_though_a_directory_of_its_partitions_fails_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=4)

    rename = Disk.rename

    def break_one(disk: Disk, old: str, new: str) -> None:
        if old.startswith(f"{tmp_path}/one/t-"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), old)
        rename(disk, old, new)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "rename", break_one)
        broker.delete("t")
    assert broker.parts.directories[0].failure is not None, "the test breaks what it means to break"
    assert [partition for partition in broker.parts.partitions if partition.topic == "t"] == []
    assert broker.ask(METADATA, 9, topics=[{"name": "t"}]).topics[0].error_code != ErrorCode.NONE
    assert sorted(path.name for path in (tmp_path / "two").glob("t-[0-9]")) == []
    broker.restart()
    broker.create("t", partitions=4)
    assert [broker.produce("t", 1, partition=index) for index in range(4)] == [0, 0, 0, 0]
    broker.close()


def no_descriptors_once(monkeypatch: pytest.MonkeyPatch, method: str, is_meant: Callable[[str], bool]) -> list[str]:
    """A disk's method finds no descriptor the first time that it gets such a path. Returns the paths that it gets."""
    paths: list[str] = []
    work = getattr(Disk, method)

    def fail_once(disk: Disk, path: str) -> None:
        if is_meant(path):
            paths.append(path)
            if len(paths) == 1:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        work(disk, path)

    monkeypatch.setattr(Disk, method, fail_once)
    return paths


def is_removed(tmp_path: Path, topic: str) -> Callable[[], bool]:
    return lambda: not list(tmp_path.glob(f"*/{topic}-*"))


def test_deleted_partitions_are_removed_though_their_new_names_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are synced before anything in them is removed: else a power cut could bring back half a partition."""
    broker = two_directories(tmp_path)
    broker.create("t", partitions=4, file_delete_delay_ms="0")
    synced = no_descriptors_once(monkeypatch, "sync_dir", lambda path: path == f"{tmp_path}/one")
    broker.delete("t")
    broker.run_until(is_removed(tmp_path, "t"))
    assert len(synced) > 1
    assert [directory.failure for directory in broker.parts.directories] == [None, None]
    broker.close()


def test_a_deleted_partition_that_finds_no_descriptors_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_RETRY_MS", 1)
    broker = two_directories(tmp_path)
    broker.create("t", partitions=2, file_delete_delay_ms="0")
    removed = no_descriptors_once(monkeypatch, "remove_tree", lambda path: "/t-" in path)
    broker.delete("t")
    broker.run_until(is_removed(tmp_path, "t"))
    assert len(removed) == 3
    broker.close()


def test_partitions_that_were_renamed_when_their_directory_failed_are_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=4)
    rename, renamed = Disk.rename, 0

    def break_second(disk: Disk, old: str, new: str) -> None:
        nonlocal renamed
        if old.startswith(f"{tmp_path}/one/t-"):
            renamed += 1
            if renamed == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO), old)
        rename(disk, old, new)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "rename", break_second)
        broker.delete("t")
    assert len(list(tmp_path.glob("one/t-*-delete"))) == 1
    broker.restart()
    broker.run_until(lambda: not list(tmp_path.glob("one/t-*-delete")))
    broker.close()


def test_a_topic_of_many_partitions_is_deleted_with_a_fixed_number_of_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = InProcessBroker(tmp_path / "data", {})
    synced: list[str] = []
    sync_dir = Disk.sync_dir

    def count(disk: Disk, path: str) -> None:
        synced.append(path)
        sync_dir(disk, path)

    counts = []
    for partitions in (2, 100):
        broker.create("many", partitions)
        synced.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Disk, "sync_dir", count)
            broker.delete("many")
        counts.append(len(synced))
    assert counts[0] == counts[1]
    broker.close()


# Elected while the log is cut


def a_follower(broker: InProcessBroker) -> Partition:
    """A partition with two batches of three records, which broker 2 leads."""
    parts = broker.parts
    broker.create("t")
    for _ in range(2):
        broker.produce("t", 3)
    partition = parts.partitions.get("t", 0)
    broker.set_partition("t", 0, replicas=(1, 2), leader=2, leader_epoch=partition.epoch + 1, isr=(1,))
    return partition


def elect(broker: InProcessBroker, partition: Partition) -> "asyncio.Task[None]":
    epoch = partition.epoch + 1

    def change(image: Image) -> Image:
        state = replace(image.partition("t", 0), leader=1, leader_epoch=epoch)
        return set_partitions(image, {("t", 0): state})

    async def elected() -> None:
        await broker.parts.metadata.change(change)

    return broker._loop.create_task(elected())


def test_r20_who_is_elected_while_its_log_is_cut_leads_from_the_end_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut is inside of a batch, all of which goes: the log ends lower than was asked for."""
    broker, may_cut, cut_file = InProcessBroker(tmp_path, {}), threading.Event(), Truncation.cut_file
    partition = a_follower(broker)

    def wait_and_cut(self: Truncation) -> None:
        may_cut.wait(30)
        cut_file(self)

    monkeypatch.setattr(Truncation, "cut_file", wait_and_cut)
    truncations = broker.parts.publisher.truncations
    truncating = broker._loop.create_task(truncations.truncate(partition, 5))
    broker.run_until(lambda: partition.log.is_truncating)
    epoch, electing = partition.epoch + 1, elect(broker, partition)
    broker.run_until(lambda: partition.follower is None)
    assert partition.leader is None, "it does not lead what is being cut"
    may_cut.set()
    broker.finish(electing)
    broker.finish(truncating)
    assert partition.leader_epoch == epoch
    assert partition.log.epochs.entries[-1] == (epoch, 3)
    assert broker.produce("t", 1) == partition.require_leader().start_offset == 3
    broker.close()


def test_who_is_elected_after_a_full_disk_interrupted_a_truncation_finishes_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = InProcessBroker(tmp_path, {})
    partition = a_follower(broker)
    interrupt_truncation(broker, partition, monkeypatch)
    broker.finish(elect(broker, partition))
    assert not partition.log.is_truncating
    assert broker.produce("t", 1) == 3
    broker.close()


def test_a_log_whose_truncation_cannot_be_finished_goes_offline_instead_of_being_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = InProcessBroker(tmp_path, {})
    partition = a_follower(broker)
    with monkeypatch.context() as patch:
        interrupt_truncation(broker, partition, patch)
        no_checkpoints(patch)
        broker.finish(elect(broker, partition))
    assert partition.leader is None
    assert list(broker.parts.partitions.all_offline()) == [("t", 0)]
    assert partition.log.failure is not None
    assert "No space left" in partition.log.failure
    broker.close()


def no_checkpoints(patch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(offset_checkpoints, "write_offsets", write)


def interrupt_truncation(broker: InProcessBroker, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when the checkpoints are to be lowered: the log ends at 3, and is not cut."""
    truncations, (directory,) = broker.parts.publisher.truncations, broker.parts.directories
    flush(partition.log)
    directory.write_recovery_points()
    with monkeypatch.context() as patch:
        no_checkpoints(patch)
        with pytest.raises(StorageError, match="No space left"):
            broker._loop.run_until_complete(truncations.truncate(partition, 3))
    assert partition.log.is_truncating


def test_checkpoints_forget_many_partitions_in_turns_and_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_directories, "_FORGOTTEN_AT_A_TIME", 1)
    broker = InProcessBroker(tmp_path, {})
    broker.create("t", 5)
    broker.create("u")
    parts = broker.parts
    directory = parts.directories[0]
    write = Mock(wraps=directory.write_checkpoints)
    monkeypatch.setattr(directory, "write_checkpoints", write)
    keys = [("t", index) for index in range(5)]
    shown_ms = count(parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    parts.loop.run_until_complete(parts.directories.forget(directory, keys, Turns(parts.clocks)))
    assert len(turns) == 5
    assert write.call_count == 1
    written = read_offsets(directory.disk, f"{directory.path}/{RECOVERY_POINT}")
    assert ("u", 0) in written
    assert not written.keys() & set(keys)
    broker.close()
