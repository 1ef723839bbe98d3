import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import StorageError
from lamina.image.changes import create_topic, set_configs
from lamina.image.image import ConfigResource, ResourceType
from lamina.log.directory import LogDirectory
from lamina.storage import METADATA_DB, StartError
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore
from lamina.topic_partition import TopicPartition
from tests.broker.broken_disk import break_paths
from tests.broker.in_process import InProcessBroker


def test_several_new_log_directories_and_one_that_is_added_belong_to_one_cluster(tmp_path: Path) -> None:
    one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": f"{one},{two}"})
    cluster_id = broker.parts.metadata.image.cluster_id
    broker.create("t", partitions=2)
    broker.restart(**{"log.dirs": f"{three},{one},{two}"})
    assert {directory.identity.cluster_id for directory in broker.parts.directories} == {cluster_id}
    assert [directory.path for directory in broker.parts.directories] == [three, one, two]
    assert broker.produce("t", 1, partition=1) == 0
    broker.close()


def test_a_new_store_takes_the_id_of_the_directories_that_are_there(tmp_path: Path) -> None:
    logs = {"log.dirs": str(tmp_path / "logs")}
    first = InProcessBroker(tmp_path / "first", logs)
    cluster_id = first.parts.metadata.image.cluster_id
    first.close()
    second = InProcessBroker(tmp_path / "second", logs)
    assert second.parts.metadata.image.cluster_id == cluster_id
    second.close()


def test_what_was_set_while_running_and_cannot_be_used_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    InProcessBroker(tmp_path / "data", {}).close()
    database = SqliteStore(str(tmp_path / "data" / METADATA_DB))
    store = MetadataStore(database, "unused")
    resource = ConfigResource(ResourceType.BROKER, "1")
    store.save(set_configs(store.image, resource, {"log.dirs": "/elsewhere"}))
    database.close()
    with pytest.raises(StartError, match=r"^with what was set while the broker ran, log.dirs: cannot change"):
        InProcessBroker(tmp_path / "data", {})


def two_directories(tmp_path: Path) -> InProcessBroker:
    return InProcessBroker(tmp_path / "data", {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"})


def plan_topic(tmp_path: Path, name: str, partitions: int) -> None:
    """A topic that is decided and not made: the broker died in between."""
    database = SqliteStore(str(tmp_path / "data" / METADATA_DB))
    store = MetadataStore(database, "unused")
    store.save(create_topic(store.image, name, bytes(range(16)), ((1,),) * partitions))
    database.close()


def test_partitions_of_a_directory_that_fails_while_opening_answer_with_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=6)
    in_one = {index for index in range(6) if (tmp_path / "one" / f"t-{index}").is_dir()}
    assert len(in_one) == 3
    broken = f"{tmp_path}/one/t-{sorted(in_one)[1]}/"
    broker.close()
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path.startswith(broken) and not path.endswith("partition.metadata"))
        broker = two_directories(tmp_path)
    for index in range(6):
        if index in in_one:
            with pytest.raises(StorageError, match="offline"):
                broker.parts.partitions.get("t", index).log.require_online()
        else:
            assert broker.produce("t", 1, partition=index) == 0
    broker.create("u", partitions=2)
    assert broker.produce("u", 1, partition=1) == 0
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in sorted(in_one)] == [0, 0, 0]
    broker.close()


def test_a_broker_whose_every_directory_fails_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=2)
    broker.close()
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: "/t-" in path and not path.endswith("partition.metadata"))
        with pytest.raises(StartError, match=r"^no log directory can be used: the log directory .*/one is offline"):
            two_directories(tmp_path)
    again = two_directories(tmp_path)
    assert again.produce("t", 1) == 0
    again.close()


def test_a_directory_that_cannot_be_listed_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_directories(tmp_path)
    broker.create("t", partitions=2)
    lost = 0 if (tmp_path / "one" / "t-0").is_dir() else 1
    broker.close()
    partitions = LogDirectory.partitions

    def list_or_fail(directory: LogDirectory) -> list[TopicPartition]:
        if directory.path == f"{tmp_path}/one":
            raise OSError(errno.EIO, os.strerror(errno.EIO), directory.path)
        return partitions(directory)

    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "partitions", list_or_fail)
        broker = two_directories(tmp_path)
    with pytest.raises(StorageError):
        broker.parts.partitions.get("t", lost)
    assert broker.produce("t", 1, partition=1 - lost) == 0
    broker.close()


def test_what_is_still_to_be_made_goes_to_a_directory_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_directories(tmp_path).close()
    plan_topic(tmp_path, "t", partitions=3)
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path.startswith(f"{tmp_path}/one/t-"))
        broker = two_directories(tmp_path)
    assert [broker.produce("t", 1, partition=index) for index in range(3)] == [0, 0, 0]
    assert {directory.path for directory in broker.parts.directories.of.values()} == {f"{tmp_path}/two"}
    broker.close()


@pytest.mark.parametrize("broken", ["one", "two"])
def test_what_fails_only_after_it_was_made_stays_where_it_is_and_is_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    two_directories(tmp_path).close()
    plan_topic(tmp_path, "t", partitions=2)
    with monkeypatch.context() as patch:
        break_paths(patch, lambda path: path == f"{tmp_path}/{broken}/recovery-point-offset-checkpoint.tmp")
        broker = two_directories(tmp_path)
    lost = 0 if broken == "one" else 1
    assert (tmp_path / broken / f"t-{lost}").is_dir()
    with pytest.raises(StorageError, match="offline"):
        broker.parts.partitions.get("t", lost).log.require_online()
    assert broker.produce("t", 1, partition=1 - lost) == 0
    broker.restart()
    assert [broker.produce("t", 1, partition=index) for index in (lost, 1 - lost)] == [0, 1]
    broker.close()


def test_of_many_logs_only_a_few_wait_to_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task for each of ten thousand would be made in one turn of the loop."""
    broker = two_directories(tmp_path)
    broker.create("t", 20)
    waiting = []
    gather = asyncio.gather

    def spied(*given: Any, **how: Any) -> Any:
        waiting.append(len(given))
        return gather(*given, **how)

    monkeypatch.setattr(asyncio, "gather", spied)
    broker.restart(**{"num.recovery.threads.per.data.dir": "2"})
    assert len(broker.parts.partitions) == 20
    assert max(waiting) == 2 * (2 + 1)
    broker.close()
