"""``lamina topics move``, against a broker with two log directories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome


class Move(Protocol):
    def __call__(self, *args: str | Path) -> Outcome: ...


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(tmp_path_factory.mktemp(name).resolve()) for name in ("one", "two")]


@pytest.fixture(scope="module")
def broker_of_two(tmp_path_factory: pytest.TempPathFactory, paths: list[str]) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("data"), "--set", f"log.dirs={','.join(paths)}") as broker:
        yield broker


@pytest.fixture
def move(lamina: Lamina, broker_of_two: BrokerProcess, topic: str) -> Move:
    where = ("--bootstrap-server", broker_of_two.address)
    lamina("topics", "create", topic, "--partitions", "3", *where)
    return lambda *args: lamina("topics", "move", *args, *where)


def places(paths: list[str], topic: str) -> list[int]:
    return [sum(Path(path, f"{topic}-{index}").exists() for index in range(3)) for path in paths]


def test_all_partitions_of_a_topic_are_moved(move: Move, topic: str, paths: list[str]) -> None:
    outcome = move(topic, "--to", paths[1])
    assert (outcome.status, outcome.err) == (0, "")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0] == ["partition", "broker", "from", "to", "size", "outcome"]
    assert [(line[0], line[1], line[3]) for line in lines[1:]] == [(f"{topic}-{n}", "1", paths[1]) for n in range(3)]
    assert {line[-1] for line in lines[1:]} <= {"moved", "there"}
    assert places(paths, topic)[1] == 3


def test_json_tells_of_each(move: Move, topic: str, paths: list[str]) -> None:
    move(topic, "--to", paths[1])
    outcome = move(f"{topic}:0,2-2", "--to", paths[0], "--json")
    assert outcome.objects == [
        {
            "type": "move",
            "topic": topic,
            "partition": index,
            "broker": 1,
            "from": paths[1],
            "to": paths[0],
            "bytes": 0,
            "outcome": "moved",
        }
        for index in (0, 2)
    ]
    (again,) = move(f"{topic}:0", "--to", paths[0], "--json").objects
    assert again["outcome"] == "there"
    (begun,) = move(f"{topic}:1", "--to", paths[0], "--no-wait", "--json").objects
    assert begun["outcome"] == "moving"


def test_what_cannot_be_moved_is_one_sentence(move: Move, topic: str, paths: list[str]) -> None:
    outcome = move(topic, "--to", "/nowhere")
    assert outcome.status == 1
    assert outcome.err == f"lamina: broker 1 has no log directory /nowhere; it has {', '.join(paths)}\n"
    outcome = move(f"{topic}:3", "--to", paths[0])
    assert (outcome.status, outcome.err) == (1, f"lamina: {topic}-3: topic '{topic}' has 3 partitions and no 3\n")
    outcome = move(topic, "--to", paths[0], "--broker", "7")
    assert outcome.status == 1
    assert outcome.err == "".join(f"lamina: {topic}-{n}: broker 7 has no replica of it\n" for n in range(3))
    outcome = move(f"{topic}:x", "--to", paths[0])
    assert outcome.status == 2
    assert "is not of the form TOPIC or TOPIC:0,3-5" in outcome.err
    assert move(f"{topic}:2-1", "--to", paths[0]).status == 2
