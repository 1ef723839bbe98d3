"""``lamina topics``, against a broker in a process of its own."""

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lamina.client.cluster import Cluster
from lamina.client.replicas import Replicas
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome, run_process
from tests.cli.terminal import run_on_terminal

Topics = Callable[..., Outcome]


@pytest.fixture
def topics(lamina: Lamina, broker: BrokerProcess) -> Topics:
    def run(name: str, *args: str | Path) -> Outcome:
        return lamina("topics", name, *args, "--bootstrap-server", broker.address)

    return run


def produce(broker: BrokerProcess, topic: str, partition: int, timestamps_ms: list[int]) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for timestamp_ms in timestamps_ms:
        producer.produce(topic, b"value", partition=partition, timestamp=timestamp_ms)
    assert producer.flush(30) == 0


# create, list, describe


def test_topics_are_made_listed_and_described(topics: Topics, topic: str) -> None:
    made = topics("create", topic, "--partitions", "2", "--config", "retention.ms=5000")
    assert (made.status, made.out) == (0, f"Created topic {topic} (2 partitions).\n")
    (row,) = (row for row in topics("list", "--json").objects if row["name"] == topic)
    assert len(row.pop("id")) == 22
    assert row == {
        "type": "topic",
        "name": topic,
        "internal": False,
        "partition_count": 2,
        "replication_factor": 1,
    }
    (described,) = topics("describe", topic, "--json").objects
    described.pop("id")
    partition = {"leader": 1, "replicas": [1], "isr": [1], "offline_replicas": [], "replica_lag": {}}
    partition |= {"earliest": 0, "latest": 0}
    assert described == row | {
        "configs": {"retention.ms": "5000"},
        "partitions": [{"partition": number} | partition for number in range(2)],
    }


def test_tables_for_people(topics: Topics, topic: str) -> None:
    topics("create", topic, "--config", "cleanup.policy=compact")
    lines = topics("list").out.splitlines()
    assert lines[0].split() == ["topic", "partitions", "replication", "factor", "id"]
    assert [line.split()[:3] for line in lines if line.startswith(f"{topic} ")] == [[topic, "1", "1"]]
    lines = topics("describe", topic).out.splitlines()
    assert lines[0].startswith(f"{topic}  (id ")
    assert lines[1] == "  cleanup.policy = compact"
    assert lines[2].split() == ["partition", "leader", "replicas", "isr", "earliest", "latest"]
    assert lines[3].split() == ["0", "1", "1", "1", "0", "0"]


def test_offline_replicas_and_lag_are_shown_where_there_are_any(
    topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics("create", topic, "--partitions", "2")
    found = Replicas({(topic, 0): (3,)}, {(topic, 0): {1: 0, 2: 15}})
    # By its name: the package has the command of the same name.
    module = import_module("lamina.cli.topics.describe")
    monkeypatch.setattr(module, "find_replicas", lambda *_: found)
    lines = topics("describe", topic).out.splitlines()
    assert lines[1].split() == ["partition", "leader", "replicas", "isr", "offline", "lag", "earliest", "latest"]
    assert lines[2].split() == ["0", "1", "1", "1", "3", "1:0", "2:15", "0", "0"]
    assert lines[3].split() == ["1", "1", "1", "1", "0", "0"]
    (described,) = topics("describe", topic, "--json").objects
    assert described["partitions"][0]["replica_lag"] == {"1": 0, "2": 15}
    assert described["partitions"][0]["offline_replicas"] == [3]


def test_the_id_is_written_as_the_broker_writes_it(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic)
    metadata = (broker.log_dir / f"{topic}-0/partition.metadata").read_text()
    (described,) = topics("describe", topic, "--json").objects
    assert f"topic_id: {described['id']}" in metadata.splitlines()


def test_all_topics_are_described_if_none_is_named(topics: Topics, topic: str) -> None:
    topics("create", topic)
    assert topic in [row["name"] for row in topics("describe", "--json").objects]


def test_a_cluster_without_topics_says_how_to_make_one(
    lamina: Lamina, own_broker: Callable[..., BrokerProcess]
) -> None:
    address = own_broker().address
    for name in ("list", "describe"):
        outcome = lamina("topics", name, "--bootstrap-server", address)
        assert (outcome.status, outcome.out) == (0, "")
        assert "lamina topics create" in outcome.err


def test_every_name_is_tried_and_each_error_is_one_sentence(topics: Topics, topic: str) -> None:
    topics("create", topic)
    outcome = topics("create", topic, "bad name", f"{topic}-b", f"{topic}-b")
    assert outcome.status == 1
    assert outcome.out == f"Created topic {topic}-b (1 partition).\n"
    exists, bad = outcome.err.splitlines()
    assert exists == f"lamina: topic '{topic}' already exists; choose another name, or delete that topic first"
    assert bad.startswith("lamina: the topic name 'bad name' has characters other than")
    outcome = topics("describe", "nowhere", topic, "bad name", "--json")
    assert outcome.status == 1
    assert [row["name"] for row in outcome.objects] == [topic]
    missing, bad = outcome.err.splitlines()
    assert missing == "lamina: there is no topic 'nowhere'; `lamina topics list` shows all topics"
    assert bad == "lamina: bad name: invalid topic; a name has up to 249 ASCII letters, digits, '.', '_' and '-'"


def test_a_topic_that_exists_is_fine_if_the_caller_says_so(topics: Topics, topic: str) -> None:
    topics("create", topic)
    outcome = topics("create", topic, "--if-not-exists")
    assert (outcome.status, outcome.out) == (0, f"Topic {topic} already exists.\n")


@pytest.mark.parametrize("flag", ["--validate-only", "--dry-run"])
def test_asking_whether_a_topic_could_be_made_makes_none(topics: Topics, topic: str, flag: str) -> None:
    assert topics("create", topic, flag).out == f"Topic {topic} could be created.\n"
    assert topics("create", topic, flag, "--replication-factor", "3").status == 1
    assert topics("describe", topic).status == 1


def test_replicas_can_be_assigned(topics: Topics, topic: str) -> None:
    assert topics("create", topic, "--replica-assignment", "1,1").status == 0
    assert topics("describe", topic, "--json").objects[0]["partition_count"] == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--replication-factor", "3"), "needs as many brokers; 1 is registered"),
        (("--config", "cleanup.policy=x"), "cleanup.policy = x: must be a list of compact or delete"),
        (("--config", "cleanup.polic=x"), "did you mean cleanup.policy?"),
        (("--partitions", "100000"), "one request may make 10000 partitions"),
        (("--replica-assignment", "1,9"), "broker 9, which is not registered"),
    ],
)
def test_what_the_broker_refuses_is_one_sentence_and_status_1(
    topics: Topics, topic: str, options: tuple[str, ...], sentence: str
) -> None:
    outcome = topics("create", topic, *options)
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert sentence in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("create", ""),
        ("create", "t", "--partitions", "0"),
        ("create", "t", "--replication-factor", "x"),
        ("create", "t", "--config", "retention.ms"),
        ("create", "t", "--replica-assignment", "1;1"),
        ("create", "t", "--replica-assignment", "1", "--partitions", "1"),
        ("describe", ""),
        ("delete",),
        ("add-partitions", "t"),
        ("offsets", "t", "--at", "yesterday"),
        ("delete-records",),
        ("delete-records", "t"),
        ("delete-records", "t", "--all", "--before-offset", "3"),
        ("delete-records", "--all"),
        ("delete-records", "t", "--before-offset", "3"),
        ("delete-records", "t", "--file", "f"),
        ("delete-records", "--partition", "1", "--file", "f"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2_before_anything_is_asked(
    lamina: Lamina, arguments: tuple[str, ...]
) -> None:
    outcome = lamina("topics", *arguments, "--bootstrap-server", "127.0.0.1:1")
    assert outcome.status == 2
    assert outcome.err.startswith("lamina: ")
    assert outcome.err.count("\n") == 1


# delete


def test_a_person_is_asked_before_a_topic_is_deleted(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic)
    where = ("--bootstrap-server", broker.address)
    refused = run_on_terminal("topics", "delete", topic, *where, answer="n")
    assert refused.status == 130
    assert f"Delete topic {topic} with all records?" in refused.err
    assert topics("describe", topic).status == 0
    agreed = run_on_terminal("topics", "delete", topic, *where, answer="y")
    assert (agreed.status, agreed.out) == (0, f"Deleted topic {topic}.\n")
    assert topics("describe", topic).status == 1


def test_an_internal_topic_is_not_deleted_by_mistake(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic)
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    outcome = topics("delete", "__consumer_offsets", "--yes")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        "lamina: __consumer_offsets: it is an internal topic: the committed offsets of all groups would be lost; "
        "--internal deletes it\n"
    )
    asked = topics("delete", "__consumer_offsets", "--internal")
    assert asked.status == 2
    assert "with all records and the committed offsets of all groups?" in asked.err
    assert topics("describe", "__consumer_offsets").status == 0


def test_where_nobody_can_be_asked_yes_is_needed(topics: Topics, topic: str) -> None:
    topics("create", topic, f"{topic}-b")
    outcome = topics("delete", topic)
    assert outcome.status == 2
    assert "--yes" in outcome.err
    outcome = topics("delete", topic, "nowhere", f"{topic}-b", "--yes")
    assert outcome.status == 1
    assert outcome.out == f"Deleted topic {topic}.\nDeleted topic {topic}-b.\n"
    assert outcome.err.count("\n") == 1
    outcome = topics("delete", "nowhere")
    assert outcome.status == 1
    assert "--yes" not in outcome.err


# partitions, offsets, records


def test_partitions_are_added_with_a_warning_about_keys(topics: Topics, topic: str) -> None:
    topics("create", topic)
    outcome = topics("add-partitions", topic, "--total", "3")
    assert (outcome.status, outcome.out) == (0, f"Topic {topic} now has 3 partitions; it had 1.\n")
    assert "later records of a key may now go to another partition" in outcome.err
    outcome = topics("add-partitions", topic, "--total", "2")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == f"lamina: topic '{topic}' has 3 partitions; 2 is not an increase\n"
    assert topics("add-partitions", "nowhere", "--total", "2").status == 1
    assert topics("describe", "nowhere").status == 1, "it must not be made by asking"


def test_offsets_by_place_and_by_time(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic, "--partitions", "2")
    produce(broker, topic, 0, [1000, 3000, 2000])
    assert topics("offsets", topic).out.splitlines() == [
        "partition  earliest  latest  offsets",
        "0          0         3       3",
        "1          0         0       0",
        "Total: 3 offsets",
    ]
    assert topics("offsets", topic, "--json").objects[0] == {
        "type": "partition_ends",
        "topic": topic,
        "partition": 0,
        "earliest": 0,
        "latest": 3,
        "count": 3,
    }
    found = {at: topics("offsets", topic, "--at", at, "--json").objects for at in ("max-timestamp", "1500", "-1s")}
    assert found["max-timestamp"][0] == {
        "type": "partition_offset",
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "timestamp": 3000,
        "time": "1970-01-01T00:00:03.000Z",
    }
    assert found["max-timestamp"][1]["offset"] is None
    assert found["1500"][0]["offset"] == 1
    assert found["-1s"][0]["offset"] is None
    assert topics("offsets", topic, "--at", "latest").out.splitlines()[1:] == [
        "0          3",
        "1          0",
    ], "a sum of offsets means nothing"
    assert topics("offsets", "nowhere").status == 1


def test_records_are_deleted_up_to_an_offset(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic, "--partitions", "2")
    produce(broker, topic, 0, [1000] * 5)
    produce(broker, topic, 1, [1000] * 5)
    before = ("delete-records", topic, "--partition", "0", "--before-offset")
    asked = topics(*before, "2")
    assert asked.status == 2
    assert f"the records of {topic}-0 below offset 2" in asked.err
    assert topics(*before, "2", "--yes").out.split() == ["partition", "log", "start", "offset", f"{topic}-0", "2"]
    outcome = topics(*before, "99", "--yes")
    assert outcome.status == 1
    assert outcome.err == (
        f"lamina: {topic}-0: offset out of range; `lamina topics offsets` shows where the partition begins and ends\n"
    )
    assert topics("delete-records", topic, "--all", "--yes").status == 0
    assert [row["earliest"] for row in topics("offsets", topic, "--json").objects] == [5, 5]


def test_records_are_deleted_by_kafkas_file(topics: Topics, broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    topics("create", topic)
    produce(broker, topic, 0, [1000] * 5)
    file = tmp_path / "offsets.json"
    marks = [
        {"topic": topic, "partition": 0, "offset": 3},
        {"topic": topic, "partition": 7, "offset": 3},
        {"topic": "nowhere", "partition": 0, "offset": 3},
    ]
    file.write_text(json.dumps({"version": 1, "partitions": marks}))
    outcome = topics("delete-records", "--file", file, "--yes")
    assert outcome.status == 1
    assert outcome.out.splitlines()[1].split() == [f"{topic}-0", "3"]
    missing, partition = outcome.err.splitlines()
    assert "nowhere" in missing
    assert partition == f"lamina: {topic}: there is no partition 7; the topic has 1, counted from 0"
    assert topics("delete-records", "--file", tmp_path / "missing", "--yes").status == 2
    file.write_text("{}")
    outcome = topics("delete-records", "--file", file, "--yes")
    assert outcome.status == 2
    assert str(file) in outcome.err


def test_a_person_is_asked_before_records_are_deleted(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", topic, "--partitions", "6")
    produce(broker, topic, 0, [1000])
    arguments = ("topics", "delete-records", topic, "--all", "--bootstrap-server", broker.address)
    refused = run_on_terminal(*arguments, answer="n")
    assert refused.status == 130
    assert f"Delete records in 6 partitions of {topic}?" in refused.err
    assert topics("offsets", topic, "--json").objects[0]["earliest"] == 0
    assert run_on_terminal(*arguments, answer="y").status == 0
    assert topics("offsets", topic, "--json").objects[0]["earliest"] == 1


def test_a_compacted_topic_keeps_its_records(topics: Topics, topic: str) -> None:
    topics("create", topic, "--config", "cleanup.policy=compact")
    outcome = topics("delete-records", topic, "--all", "--yes")
    assert outcome.status == 1
    assert "only compacted" in outcome.err


# A broker that goes


def test_a_broker_that_dies_in_the_middle_ends_the_command(own_broker: Callable[..., BrokerProcess]) -> None:
    from lamina.client.errors import Unreachable

    process = own_broker()
    cluster = Cluster(process.address)
    admin = cluster.admin()
    process.kill()
    with pytest.raises(Unreachable, match=r"^no broker answers at [\d.:]+ \(.*\); start one"):
        cluster.answer(admin.describe_cluster())


# Completion


def complete(words: str, cursor: int, **environment: str) -> list[str]:
    outcome = run_process(_LAMINA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(cursor), **environment)
    assert outcome.err == ""
    return [line.partition(",")[2] for line in outcome.out.splitlines() if line]


def test_the_shell_completes_topics(topics: Topics, broker: BrokerProcess, topic: str) -> None:
    topics("create", f"{topic}-complete")
    words = f"lamina topics describe {topic}-c"
    assert complete(words, 3, LAMINA_BOOTSTRAP_SERVERS=broker.address) == [f"{topic}-complete"]
    words = f"lamina topics describe --bootstrap-server {broker.address} {topic}-c"
    assert complete(words, 5) == [f"{topic}-complete"]
    words = f"lamina configs get --topic {topic}-c"
    assert complete(words, 4, LAMINA_BOOTSTRAP_SERVERS=broker.address) == [f"{topic}-complete"]


def test_without_a_cluster_nothing_is_completed_and_nothing_said() -> None:
    assert complete("lamina topics describe x", 3, LAMINA_BOOTSTRAP_SERVERS="127.0.0.1:1") == []
    assert complete("lamina topics describe x", 3, LAMINA_BOOTSTRAP_SERVERS="no address") == []
    assert "describe" in complete("lamina topics d", 2, HOME=os.devnull)


def test_what_is_created_and_deleted_is_told_in_json_too(topics: Topics, topic: str) -> None:
    row = {"type": "topic_creation", "name": topic}
    checked = topics("create", topic, "--dry-run", "--json").objects
    assert checked == [{**row, "outcome": "valid", "partition_count": None}]
    created = topics("create", topic, "--partitions", "2", "--json").objects
    assert created == [{**row, "outcome": "created", "partition_count": 2}]
    again = topics("create", topic, "--if-not-exists", "--json").objects
    assert again == [{**row, "outcome": "exists", "partition_count": 2}]
    assert topics("delete", topic, "--yes", "--json").objects == [{"type": "topic_deletion", "name": topic}]
