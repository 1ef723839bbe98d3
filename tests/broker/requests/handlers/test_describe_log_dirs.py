from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 35


def sizes(result: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_version_tells_the_size_of_every_partition(broker: InProcessBroker, version: int) -> None:
    broker.create("t", partitions=2)
    broker.produce("t", 10, partition=1)
    response = broker.ask(API_KEY, version, topics=None)
    [result] = response.results
    directory = Path(result.log_dir)
    file = directory / "t-1" / f"{0:020}.log"
    assert sizes(result) == {("t", 0): 0, ("t", 1): file.stat().st_size}
    assert result.error_code == 0
    partition = result.topics[0].partitions[0]
    assert (partition.offset_lag, partition.is_future_key) == (0, False)
    if version >= 3:
        assert response.error_code == 0
    if version >= 4:
        assert result.total_bytes >= result.usable_bytes > 0
    if version >= 5:
        assert not result.is_cordoned


def test_only_the_asked_partitions_are_told_and_none_for_an_empty_list(broker: InProcessBroker) -> None:
    broker.create("t", partitions=3)
    broker.create("u")
    asked = [{"topic": "t", "partitions": [2, 9]}, {"topic": "none", "partitions": [0]}]
    assert set(sizes(broker.ask(API_KEY, 4, topics=asked).results[0])) == {("t", 2)}
    assert sizes(broker.ask(API_KEY, 4, topics=[]).results[0]) == {}


def test_a_directory_that_is_offline_says_so_and_the_other_one_is_told(broker: InProcessBroker, tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    broker.restart(**{"log.dirs": f"{one},{other}"})
    broker.create("t", partitions=2)
    broker.parts.directories[0].fail(OSError("a test"))
    offline, online = broker.ask(API_KEY, 4, topics=None).results
    assert (offline.log_dir, offline.error_code) == (one, ErrorCode.KAFKA_STORAGE_ERROR)
    assert (offline.topics, offline.total_bytes, offline.usable_bytes) == ((), -1, -1)
    assert (online.log_dir, online.error_code, len(sizes(online))) == (other, 0, 1)
