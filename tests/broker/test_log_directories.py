"""Several log directories: some that cannot be opened, that changed their order or paths, or hold a partition twice."""

import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from lamina.log.directory import LogDirectory
from lamina.log.names import is_deleted_directory
from lamina.settings.resolve import resolve_broker
from lamina.storage import StartError, open_storage
from tests.broker.broken_disk import break_paths
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of

PARTITIONS = 4


def start(tmp_path: Path, *names: str) -> InProcessBroker:
    return InProcessBroker(tmp_path / "data", {"log.dirs": ",".join(str(tmp_path / name) for name in names)})


def error_of_produce(broker: InProcessBroker, topic: str, partition: int) -> int:
    data = {"index": partition, "records": batch_of(broker, 1)}
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": topic, "partition_data": [data]}])
    return int(response.responses[0].partition_responses[0].error_code)


def produce_to_all(broker: InProcessBroker) -> list[int]:
    return [broker.produce("t", 1, partition=index) for index in range(PARTITIONS)]


def partitions_in(path: Path) -> set[int]:
    return {int(entry.name.removeprefix("t-")) for entry in path.glob("t-[0-9]")}


def test_new_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    broker = start(tmp_path, "one")
    broker.create("t", partitions=3)
    broker.restart(**{"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"})
    broker.create("u", partitions=3)
    assert {entry.name for entry in (tmp_path / "two").glob("u-*")} == {"u-0", "u-1", "u-2"}
    broker.close()


def test_a_directory_that_cannot_be_opened_takes_only_its_partitions_offline(tmp_path: Path) -> None:
    broker = start(tmp_path, "one", "two")
    broker.create("t", partitions=PARTITIONS)
    assert produce_to_all(broker) == [0] * PARTITIONS
    broker.close()
    there = partitions_in(tmp_path / "two")
    (tmp_path / "two").rename(tmp_path / "away")
    (tmp_path / "two").write_bytes(b"")
    broker.start()
    online, offline = broker.parts.directories
    assert (online.failure, offline.failure is None) == (None, False)
    for index in range(PARTITIONS):
        expected = ErrorCode.KAFKA_STORAGE_ERROR if index in there else ErrorCode.NONE
        assert error_of_produce(broker, "t", index) == expected
    broker.create("new", partitions=1)
    assert (tmp_path / "one" / "new-0").is_dir()
    broker.close()
    (tmp_path / "two").unlink()
    (tmp_path / "away").rename(tmp_path / "two")
    broker.start()
    assert {index: broker.produce("t", 1, partition=index) for index in there} == dict.fromkeys(there, 1)
    broker.close()


def test_a_directory_that_fails_in_a_clean_stop_is_let_go_of_and_the_others_stop_cleanly(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    settings = {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}
    broker = InProcessBroker(tmp_path / "data", settings, loop=loop)
    broker.create("t", partitions=PARTITIONS)
    assert produce_to_all(broker) == [0] * PARTITIONS
    loop.run_until_complete(broker.parts.stop())
    with pytest.MonkeyPatch.context() as patched:
        break_paths(patched, lambda path: path.startswith(str(tmp_path / "one" / "replication-offset-checkpoint")))
        [why] = loop.run_until_complete(broker.parts.close())
    assert f"the stop was not clean: the log directory {tmp_path / 'one'} is offline" in why
    broker.start()
    assert [directory.was_clean for directory in broker.parts.directories] == [False, True]
    assert produce_to_all(broker) == [1] * PARTITIONS
    broker.close()
    loop.close()


def test_without_any_directory_the_broker_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"")
    (tmp_path / "two").write_bytes(b"")
    with pytest.raises(StartError, match="cannot be used"):
        start(tmp_path, "one", "two")


def test_directories_may_change_their_order_and_their_paths(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = start(tmp_path, "one", "two")
    broker.create("t", partitions=PARTITIONS)
    assert produce_to_all(broker) == [0] * PARTITIONS
    broker.close()
    (tmp_path / "two").rename(tmp_path / "moved")
    with caplog.at_level(logging.INFO):
        broker = start(tmp_path, "moved", "one")
    assert produce_to_all(broker) == [1] * PARTITIONS
    assert f"was {tmp_path / 'two'} before" in caplog.text
    broker.close()


def test_the_brokers_own_file_is_found_in_whichever_directory_it_is(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"

    def cluster_of(*paths: Path) -> str:
        storage = open_storage(resolve_broker(sets={"node.id": "1", "log.dirs": ",".join(map(str, paths))}))
        cluster_id = storage.metadata.image.cluster_id
        assert storage.data_directory == str(one)
        storage.close()
        return cluster_id

    assert cluster_of(one, two) == cluster_of(two, one)
    shutil.copy(one / "metadata.db", two / "metadata.db")
    with pytest.raises(StartError, match="both hold a broker's own file"):
        cluster_of(two, one)


def test_a_copy_of_a_directory_is_not_taken_for_another_one(tmp_path: Path) -> None:
    start(tmp_path, "one").close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(StartError, match="are the same log directory"):
        start(tmp_path, "one", "two")


def test_a_directory_that_comes_back_empty_is_told_by_its_id(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = start(tmp_path, "one", "two")
    broker.create("t", partitions=2)
    lost = partitions_in(tmp_path / "two")
    known = broker.parts.directories[1].identity.directory_id
    broker.close()
    shutil.rmtree(tmp_path / "two")
    broker.start()
    assert f"{tmp_path / 'two'} is another directory than before: what was in {known}" in caplog.text
    assert [error_of_produce(broker, "t", index) for index in lost] == [ErrorCode.KAFKA_STORAGE_ERROR] * len(lost)
    assert not partitions_in(tmp_path / "two"), "a lost partition is never made empty"
    caplog.clear()
    broker.restart()
    assert "another directory than before" not in caplog.text, "it is told once"
    broker.restart(**{"log.dirs": str(tmp_path / "one")})
    assert "is not among the directories of log.dirs" in caplog.text
    broker.close()


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
@pytest.mark.parametrize("is_interrupted_move", [True, False])
def test_of_a_partition_that_is_in_two_directories_the_log_that_reaches_further_counts(
    tmp_path: Path, order: tuple[str, str], is_interrupted_move: bool
) -> None:
    broker = start(tmp_path, "one")
    broker.create("t")
    assert broker.produce("t", 3) == 0
    broker.close()
    old = tmp_path / "old"
    shutil.copytree(tmp_path / "one" / "t-0", old)
    broker.start()
    assert broker.produce("t", 2) == 3
    broker.close()
    source = LogDirectory.open(str(tmp_path / "one"), node_id=1)
    if is_interrupted_move:
        (old / "lamina-moved-from").write_text(source.identity.directory_id or "")
    source.release()
    LogDirectory.open(str(tmp_path / "two"), node_id=1, cluster_id=source.identity.cluster_id).release()
    old.rename(tmp_path / "two" / "t-0")
    broker = start(tmp_path, *order)
    assert broker.produce("t", 1) == 5, "the furthest is used"
    left = [entry.name for entry in (tmp_path / "two").iterdir() if entry.name.startswith("t-")]
    if is_interrupted_move:
        assert all(is_deleted_directory(name) for name in left)
    else:
        assert [name.endswith("-stray") for name in left] == [True]
    broker.close()
