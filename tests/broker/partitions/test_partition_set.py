"""The partitions of a broker, and which of them are offline."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.in_process import InProcessBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path, {})
    opened.create("t", partitions=3)
    yield opened
    opened.close()


def test_each_partition_goes_offline_once_however_many_directories_fail(broker: InProcessBroker) -> None:
    told: list[int] = []
    partitions = broker.parts.partitions
    partitions.when_offline(lambda partition: told.append(partition.index))
    partitions.get("t", 1).log.take_offline("its directory is gone")
    partitions.directory_failed()
    partitions.get("t", 2).log.take_offline("another one is gone")
    partitions.directory_failed()
    assert told == [1, 2]
    assert partitions.offline("t") == {1, 2}
    assert set(partitions.all_offline()) == {("t", 1), ("t", 2)}


def test_who_asked_which_are_offline_keeps_what_was_so_then(broker: InProcessBroker) -> None:
    partitions = broker.parts.partitions
    assert partitions.offline("t") == frozenset()
    partitions.add_missing("t", 7, UUID(int=1), "it has no log")
    then = partitions.offline("t")
    partitions.add_missing("t", 8, UUID(int=1), "it has no log")
    assert partitions.offline("t") == {7, 8}
    partitions.remove("t", 7)
    assert partitions.offline("t") == {8}
    assert then == {7}
    partitions.forget_topic(UUID(int=1))
    assert partitions.offline("t") == frozenset()
