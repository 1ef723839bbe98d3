"""``lamina topics elect``, against a broker that leads all that it has; tests/cluster has elections that are needed."""

import json
from pathlib import Path
from typing import Protocol

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome


class Elect(Protocol):
    def __call__(self, *args: str | Path) -> Outcome: ...


@pytest.fixture
def elect(lamina: Lamina, broker: BrokerProcess, topic: str) -> Elect:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, "--partitions", "2", *where)
    return lambda *args: lamina("topics", "elect", *args, *where)


def test_a_partition_that_is_led_as_it_should_be_stays_so(elect: Elect, topic: str) -> None:
    outcome = elect(topic)
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.split() for line in outcome.out.splitlines()] == [
        ["partition", "leader", "elected"],
        [f"{topic}-0", "1", "no"],
        [f"{topic}-1", "1", "no"],
    ]
    (told,) = elect(topic, "--partition", "1", "--json").objects
    assert told == {
        "type": "election",
        "topic": topic,
        "partition": 1,
        "unclean": False,
        "elected": False,
        "leader": 1,
    }


def test_what_is_not_there_is_one_sentence_each(elect: Elect, topic: str) -> None:
    outcome = elect(topic, "--partition", "1", "--partition", "2")
    assert outcome.status == 1
    assert outcome.out.splitlines()[1:] == [f"{topic}-1".ljust(max(len(topic) + 2, 9)) + "  1       no"]
    assert outcome.err == (
        f"lamina: {topic}-2: topic '{topic}' has 2 partitions and no 2; `lamina topics list` shows all topics\n"
    )
    outcome = elect("nowhere")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == "lamina: there is no topic 'nowhere'; `lamina topics list` shows all topics\n"


def test_of_all_partitions_none_needs_an_election(elect: Elect) -> None:
    for more in ((), ("--unclean", "--yes")):
        outcome = elect("--all", *more)
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "lamina: no partition needs an election\n")


def test_a_file_of_kafkas_tool(elect: Elect, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "elections.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1}]}))
    assert [one["partition"] for one in elect("--file", file, "--json").objects] == [1]
    file.write_text("[]")
    outcome = elect("--file", file)
    assert outcome.status == 2
    assert 'must be an object with a list "partitions"' in outcome.err
    assert elect("--file", tmp_path / "missing").status == 2


def test_an_unclean_election_is_asked_for(elect: Elect, topic: str) -> None:
    outcome = elect(topic, "--partition", "0", "--unclean")
    assert outcome.status == 2
    assert f"Elect leaders of {topic}-0 that may lack records? What they lack is lost." in outcome.err
    assert elect(topic, "--unclean", "--yes").status == 0


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--partition", "0"),
        ("t", "--all"),
        ("t", "--file", "f"),
        ("--all", "--file", "f"),
        ("t", "--partition", "-1"),
    ],
)
def test_a_wrong_command_line_never_reaches_the_broker(lamina: Lamina, args: tuple[str, ...]) -> None:
    assert lamina("topics", "elect", *args, "--bootstrap-server", "127.0.0.1:1").status == 2
