"""When all replicas are in sync, and how much a broker has of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import replicas
from bench.replicas import await_until, is_in_sync, leader_addresses, segment_bytes


class Admin:
    """Tells of partitions by their leader and their in-sync set."""

    def __init__(self, *partitions: tuple[int, list[int]]) -> None:
        told = {
            number: SimpleNamespace(id=number, leader=leader, isrs=isrs)
            for number, (leader, isrs) in reversed(list(enumerate(partitions)))
        }
        brokers = {number: SimpleNamespace(host="127.0.0.1", port=9000 + number) for number in (1, 2, 3)}
        self._told = SimpleNamespace(brokers=brokers, topics={"topic": SimpleNamespace(partitions=told)})

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> Any:
        return self._told


@pytest.mark.parametrize(
    ("partitions", "is_so"),
    [
        ([(1, [1, 2, 3]), (2, [3, 2, 1])], True),
        ([(1, [1, 2, 3]), (2, [2, 3])], False),
        ([(-1, [1, 2, 3])], False),
    ],
)
def test_all_are_in_sync_when_every_partition_has_a_leader_and_all_brokers(
    partitions: list[tuple[int, list[int]]], is_so: bool
) -> None:
    admin: Any = Admin(*partitions)
    assert is_in_sync(admin, (1, 2, 3)) is is_so


def test_leaders_are_told_in_the_order_of_their_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "new_admin", lambda _: Admin((3, [3]), (1, [1]), (2, [2])))
    assert leader_addresses("broker", "topic") == [("127.0.0.1", 9003), ("127.0.0.1", 9001), ("127.0.0.1", 9002)]


def test_segments_of_other_topics_and_other_files_do_not_count(tmp_path: Path) -> None:
    for name, size in (
        ("topic-a1-0/00.log", 10),
        ("topic-a1-0/07.log", 5),
        ("topic-a1-1/00.log", 1),
        ("topic-a1-0/00.index", 100),
        ("topic-b2-0/00.log", 1000),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(size))
    assert segment_bytes(tmp_path, "topic-a1") == 16


def test_what_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("bench.replicas.time.monotonic", lambda: now[0])
    monkeypatch.setattr("bench.replicas.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    await_until(lambda: now[0] > 5, "never", 10)
    with pytest.raises(TimeoutError, match="never after 10 s"):
        await_until(lambda: False, "never", 10)
