"""The directory of a log that is copied from another log directory: its name, its end, what a clean stop says of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.log.copies import moved_from
from lamina.log.directory import LogDirectory
from lamina.log.future_logs import FutureLog, future_logs, give_name, make_future_log, rename_discarded
from lamina.log.names import future_directory, is_deleted_directory, may_have_future, parse_future_directory
from tests.log.building import NOW_MS, a_log

KEY = ("t", 3)
TOPIC_ID = bytes(range(16))


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[list[LogDirectory]]:
    opened = [LogDirectory.open(str(tmp_path / name), node_id=1) for name in ("one", "two")]
    yield opened
    for directory in opened:
        directory.close()


def names(directory: LogDirectory) -> list[str]:
    return [name for name in os.listdir(directory.path) if name.startswith("t-3")]


@pytest.mark.parametrize("topic", ["t", "a.b-c", "n" * 211])
def test_its_name_tells_the_partition(topic: str) -> None:
    name = future_directory(topic, 12, "0123456789abcdef" * 2)
    assert parse_future_directory(name) == (topic, 12)
    assert may_have_future(topic, 12)


@pytest.mark.parametrize(
    "name", ["t-3", "t-3.0123-future", f"t.{'0' * 32}-future", f"t-3.{'0' * 32}-delete", f"t-03.{'0' * 32}-future"]
)
def test_other_names_tell_none(name: str) -> None:
    assert parse_future_directory(name) is None


def test_a_topic_that_leaves_no_space_for_it_has_none() -> None:
    assert not may_have_future("n" * 213, 12)


def test_one_that_is_made_is_found_with_its_topic(directories: list[LogDirectory]) -> None:
    future = make_future_log(directories[0], KEY, TOPIC_ID)
    assert future_logs(directories[0]) == [future]
    assert (future.partition, future.topic_id) == (KEY, TOPIC_ID)
    assert directories[0].partitions() == []
    assert future_logs(directories[1]) == []


def filled(tmp_path: Path, future: FutureLog) -> None:
    """As many batches as a log that is closed at once has."""
    builder = a_log(tmp_path / "builder")
    builder.append_batches(5)
    log = future.directory.open_log(*KEY, builder.config, NOW_MS, 1 << 40, future.name)
    lease = builder.log.read(0, 1 << 20)
    assert lease is not None
    with lease:
        log.append_as_follower(lease.read(), NOW_MS)
    future.directory.adopt(log)


def test_with_the_partitions_name_it_says_from_where_it_comes(tmp_path: Path, directories: list[LogDirectory]) -> None:
    source, target = directories
    future = make_future_log(target, KEY, TOPIC_ID)
    filled(tmp_path, future)
    named = give_name(future, target.logs.pop(KEY), source)
    assert (named.name, names(target)) == ("t-3", ["t-3"])
    assert moved_from(target, KEY) == source.identity.directory_id
    log = target.open_partition(*KEY, a_log(tmp_path / "other").config, NOW_MS)
    assert log.log_end_offset == 5
    assert give_name(named, target.logs.pop(KEY), source) == named, "it has its name already"


def test_one_that_is_discarded_waits_for_its_removal(directories: list[LogDirectory]) -> None:
    path = rename_discarded(make_future_log(directories[0], KEY, TOPIC_ID))
    (name,) = names(directories[0])
    assert path == f"{directories[0].path}/{name}"
    assert is_deleted_directory(name)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_clean_stop_is_marked_only_if_what_is_copied_was_closed_with_it(tmp_path: Path, is_open: bool) -> None:
    """Of one that nobody holds any more nobody knows how much is on the disk."""
    directory = LogDirectory.open(str(tmp_path / "one"), node_id=1)
    directory.close()
    directory = LogDirectory.open(str(tmp_path / "one"), node_id=1)
    assert directory.was_clean
    future = make_future_log(directory, KEY, TOPIC_ID)
    if is_open:
        filled(tmp_path, future)
    directory.close()
    again = LogDirectory.open(str(tmp_path / "one"), node_id=1)
    assert again.was_clean == is_open
    again.close()
