"""Command lines that are nearly right: what is suggested, and Kafka's spelling."""

import subprocess
import sys

import pytest

from lamina import __version__
from lamina.cli.app import SECTIONS
from lamina.cli.kafka_spelling import KAFKA_TOOLS
from tests.cli.records import Records
from tests.cli.running import SOURCES, Lamina


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("topic", "lamina topics"),
        ("group", "lamina groups"),
        ("config", "lamina configs"),
        ("broker", "lamina brokers"),
        ("server", "lamina serve"),
        ("kafka-topics.sh", "lamina topics"),
        ("kafka-console-consumer.sh", "lamina consume"),
        ("kafka-console-producer", "lamina produce"),
        ("topics crate", "lamina topics create"),
        ("topics --list", "lamina topics list"),
        ("groups --describe", "lamina groups describe"),
        ("help", "lamina --help"),
        ("start", "lamina serve"),
        ("status", "lamina brokers"),
        ("list", "lamina topics list"),
        ("cluster down", "lamina cluster stop"),
        ("cluster start", "lamina cluster up"),
        ("version", "lamina --version"),
        ("topics alter", "lamina topics add-partitions TOPIC --total N"),
        ("topics alter --topic orders --partitions 6", "lamina topics add-partitions orders --total 6"),
        ("topics --alter --topic orders --config a=b", "lamina configs set --topic orders a=b"),
        ("configs describe", "lamina configs get --topic TOPIC"),
        ("configs describe --topic orders", "lamina configs get --topic orders"),
        ("configs --entity-type brokers --entity-default --describe", "lamina configs get --broker-default"),
        (
            "configs --alter --entity-type topics --entity-name orders --add-config retention.ms=1,policy=[a,b]",
            "lamina configs set --topic orders retention.ms=1 policy=a,b",
        ),
        (
            "configs --bootstrap-server h:1 --entity-type brokers --entity-name 1 --alter --delete-config x.y",
            "lamina configs unset --broker 1 --bootstrap-server h:1 x.y",
        ),
    ],
)
def test_a_name_that_is_not_there_gets_the_one_that_was_meant(lamina: Lamina, typed: str, meant: str) -> None:
    outcome = lamina(*typed.split())
    assert (outcome.status, outcome.out) == (2, "")
    is_option = typed.split()[len(typed.split()) > 1].startswith("--")
    assert outcome.err.startswith(f"lamina: no such {'option' if is_option else 'command'} '")
    assert outcome.err.endswith(f"': did you mean `{meant}`?\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("stop", "no such command 'stop': press Ctrl-C where `lamina serve` runs, or send that process SIGTERM"),
        ("kafka-server-stop.sh", "Ctrl-C"),
        ("serve --port 9093", "no such option '--port': give --listen 127.0.0.1:PORT"),
        ("--port 9093", "lamina serve --listen 127.0.0.1:PORT"),
        ("cluster up --port 9093", "give --base-port P"),
        ("cluster add-broker --port 9093", "leave it out"),
        ("cluster status --port 9093", "no such option '--port'; see `lamina cluster status --help`"),
        ("cluster stop zookeeper", "ZooKeeper stops last, with the whole cluster: leave it out"),
        ("brokers undrain 2", "`lamina brokers rebalance --leaders`"),
        ("topics set orders retention.ms=1", "give `lamina configs set --topic TOPIC KEY=VALUE`"),
        ("topics create t --set a=b", "no such option '--set': give --config KEY=VALUE"),
        ("topics move t:0 u t:1 --to 4", "`lamina topics reassign --generate --brokers 4 t u > plan.json`"),
        ("consume t -n 3", "no such option '-n': give --count N"),
        (
            "configs set prices retention.ms=1",
            "give one of --topic, --broker and --broker-default: did you mean --topic prices?",
        ),
        ("configs get prices", "did you mean --topic prices?"),
        ("configs get retention.ms", "give one of --topic, --broker and --broker-default; see"),
        ("configs set retention.ms=1", "give one of --topic, --broker and --broker-default; see"),
        ("topics list --port 9093", "give --bootstrap-server HOST:PORT"),
        ("produce t --broker-list h:1", "no such option '--broker-list': give --bootstrap-server HOST:PORT"),
        ("produce t --property parse.key=true", "--key-separator :"),
        ("consume t --property print.key=true", "--format '%k"),
        ("consume t --offset 5", "no such option '--offset': give --from WHERE"),
        ("topics elect --election-type preferred", "give --unclean for an unclean election, nothing for"),
        ("topics elect --path-to-json-file f", "give --file FILE"),
        ("configs get --entity-type topics", "give --topic TOPIC, --broker ID or --broker-default"),
    ],
)
def test_what_lamina_has_not_is_answered_with_what_it_has(lamina: Lamina, typed: str, said: str) -> None:
    outcome = lamina(*typed.split())
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("meant", KAFKA_TOOLS.values())
def test_every_command_that_is_suggested_for_a_tool_of_kafka_exists(lamina: Lamina, meant: str) -> None:
    assert lamina(*meant.split(), "--help").status == 0


def test_an_option_that_is_not_there_gets_the_nearest_ones(lamina: Lamina) -> None:
    outcome = lamina("topics", "create", "t", "--partition", "3")
    assert outcome.status == 2
    assert outcome.err.startswith("lamina: no such option '--partition': did you mean --partitions")


def test_an_option_of_the_cluster_goes_behind_the_command(lamina: Lamina) -> None:
    outcome = lamina("topics", "--bootstrap-server", "127.0.0.1:1", "list")
    assert outcome.err == "lamina: put --bootstrap-server behind the command; see `lamina topics --help`\n"


def test_the_spelling_of_kafkas_tools_is_understood(records: Records, topic: str) -> None:
    lamina, where = records.lamina, ("--bootstrap-server", records.address)
    assert lamina("topics", "create", "--topic", topic, "--partitions", "2", *where).status == 0
    file = records.directory / "lines"
    file.write_text("1\n2\n3\n")
    assert lamina("produce", *where, "--topic", topic, "--file", file, "--partition", "0").status == 0
    consumed = lamina("consume", *where, "--topic", topic, "--from-beginning", "--max-messages", "2")
    assert (consumed.status, consumed.out) == (0, "1\n2\n")
    committed = lamina("consume", *where, "--topic", topic, "--isolation-level", "read_committed")
    assert committed.out == "1\n2\n3\n"
    assert topic in lamina("topics", "describe", *where, "--topic", topic).out
    reset = ("reset-offsets", "--group", f"g-{topic}", "--topic", topic, "--to-earliest", "--execute")
    assert lamina("groups", *reset, *where).status == 0
    assert lamina("groups", "describe", "--group", f"g-{topic}", *where).status == 0
    assert lamina("topics", "delete", *where, "--topic", topic, "--yes").status == 0


@pytest.mark.parametrize(
    "args",
    [
        ("topics", "delete"),
        ("consume",),
        ("consume", "t", "--topic", "t"),
        ("consume", "t", "--from-beginning", "--from", "5"),
        ("consume", "--topic", ""),
    ],
)
def test_a_name_that_is_missing_or_given_twice_is_one_sentence(lamina: Lamina, args: tuple[str, ...]) -> None:
    outcome = lamina(*args, "--bootstrap-server", "127.0.0.1:1")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "--help" in outcome.err


def test_an_option_that_is_missing_is_shown_with_what_it_takes(lamina: Lamina) -> None:
    outcome = lamina("verify", "/tmp")
    assert outcome.status == 2
    assert outcome.err == "lamina: missing option '--dir': give --dir DIR; see `lamina verify --help`\n"


def test_without_a_terminal_to_ask_on_one_sentence_names_the_option(records: Records, topic: str) -> None:
    records.make(topic)
    outcome = records.lamina("topics", "delete", topic, "--bootstrap-server", records.address)
    assert outcome.status == 2
    assert outcome.err == (
        f"lamina: there is no terminal to ask 'Delete topic {topic} with all records?': give --yes to go ahead\n"
    )
    assert topic in records.topics()


@pytest.mark.parametrize("args", [(), ("topics",), ("bench",)])
def test_without_a_command_there_is_help(lamina: Lamina, args: tuple[str, ...]) -> None:
    outcome = lamina(*args)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == lamina(*args, "--help").out


def test_help_groups_the_commands(lamina: Lamina) -> None:
    lines = lamina("--help").out.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[-len(SECTIONS) :] == list(SECTIONS)


def test_what_a_command_says_of_itself_is_not_cut(lamina: Lamina) -> None:
    said = " ".join(lamina("groups", "--help").out.split())
    assert "reset-offsets Reset the committed offsets of a group that has no members." in said


def test_the_package_can_be_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lamina", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(SOURCES)},
    )
    assert (done.returncode, done.stdout) == (0, f"lamina {__version__}\n")
