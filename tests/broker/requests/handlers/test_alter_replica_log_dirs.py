"""The answers of AlterReplicaLogDirs (R70); what becomes of the logs is tested in tests/broker/moving."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from lamina.image.changes import set_partitions
from tests.broker.broken_disk import break_paths
from tests.broker.moving.two_directories import ALTER_REPLICA_LOG_DIRS, TwoDirectories

API_KEY = ALTER_REPLICA_LOG_DIRS[0]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDirectories]:
    two = TwoDirectories(tmp_path)
    two.broker.create("t", partitions=2)
    yield two
    two.close()


@pytest.mark.parametrize("version", [1, 2])
def test_every_version_answers_for_each_partition(two: TwoDirectories, version: int) -> None:
    first, second = two.directories
    wanted = [
        {"path": first.path, "topics": [{"name": "t", "partitions": [0, 9]}, {"name": "nobody", "partitions": [0]}]},
        {"path": second.path, "topics": [{"name": "t", "partitions": [1]}]},
    ]
    response = two.broker.ask(API_KEY, version, dirs=wanted)
    codes = {
        (topic.topic_name, one.partition_index): one.error_code
        for topic in response.results
        for one in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 9): unknown, ("nobody", 0): unknown, ("t", 1): 0}


@pytest.mark.parametrize("path", ["/no/such/directory", "two", ""])
def test_a_path_that_is_no_log_directory_is_not_found(two: TwoDirectories, path: str) -> None:
    assert two.begin(path or "relative") == ErrorCode.LOG_DIR_NOT_FOUND


def test_a_directory_is_known_by_another_spelling_too(two: TwoDirectories) -> None:
    there = two.elsewhere
    assert two.begin(f"{there.path}/../{Path(there.path).name}/") == ErrorCode.NONE
    two.finish()
    assert two.here is there


def test_a_topic_with_too_long_a_name_is_not_moved(two: TwoDirectories) -> None:
    """The name of the directory would have more than 255 characters."""
    two.broker.create("n" * 213)
    two.broker.create("n" * 214)
    path = two.elsewhere.path
    assert two.begin(path, "n" * 213) == ErrorCode.NONE
    two.finish()
    assert two.begin(path, "n" * 214) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_while_a_directory_is_offline_nothing_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoDirectories(tmp_path)
    two.broker.create("t", partitions=2)
    broken = two.broker.parts.directories.of["t", 1]
    break_paths(monkeypatch, lambda path: path.startswith(broken.path))
    broken.fail(OSError(5, "Input/output error"))
    assert two.begin(two.elsewhere.path) == ErrorCode.KAFKA_STORAGE_ERROR
    assert two.begin(two.here.path, partition=1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert two.begin(two.here.path) == ErrorCode.NONE, "it is there already"
    two.close()


def test_where_a_replica_is_to_live_is_remembered_until_it_comes(two: TwoDirectories) -> None:
    """As kafka-reassign-partitions asks for it before it assigns the replica."""
    publisher, image = two.broker.parts.publisher, two.broker.parts.metadata.image
    mine = image.partition("t", 0)
    others = replace(mine, replicas=(2, 3), leader=2, isr=(2, 3), leader_epoch=mine.leader_epoch + 1, made_on=(2, 3))
    given_away = set_partitions(image, {("t", 0): others})
    came_from, wanted = two.here, two.elsewhere

    def apply(new: object) -> None:
        two.broker.parts.loop.run_until_complete(publisher.apply(publisher.image, new))  # type: ignore[arg-type]

    apply(given_away)
    # The next one would go to the directory that has none now.
    assert two.begin(wanted.path) == ErrorCode.REPLICA_NOT_AVAILABLE
    back = replace(others, replicas=(1, 2, 3), adding=(1,), leader_epoch=others.leader_epoch + 1)
    apply(set_partitions(given_away, {("t", 0): back}))
    assert two.here is wanted is not came_from
    assert not two.broker.parts.directories.asked
