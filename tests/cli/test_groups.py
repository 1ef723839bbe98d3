"""``lamina groups``, against a broker in a process of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome

Groups = Callable[..., Outcome]
PARTITIONS = 3
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Whose groups wait for nobody."""
    no_delay = ("--set", "group.initial.rebalance.delay.ms=0")
    with BrokerProcess(tmp_path_factory.mktemp("broker"), *no_delay) as started_broker:
        yield started_broker


@pytest.fixture
def groups(lamina: Lamina, broker: BrokerProcess) -> Groups:
    def run(name: str, *args: str | Path) -> Outcome:
        return lamina("groups", name, *args, "--bootstrap-server", broker.address)

    return run


@pytest.fixture
def filled(lamina: Lamina, broker: BrokerProcess, topic: str) -> str:
    """A topic of three partitions with ten records each, a second apart."""
    lamina("topics", "create", topic, "--partitions", str(PARTITIONS), "--bootstrap-server", broker.address)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(10):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"value", partition=partition, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0
    return topic


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


def commit(broker: BrokerProcess, group: str, topic: str, *offsets: int) -> None:
    """As a consumer that is in no group's membership does, from partition 0 on."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    consumer.commit(
        offsets=[TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)], asynchronous=False
    )
    consumer.close()


@contextmanager
def member(broker: BrokerProcess, group: str, topic: str, protocol: str = "consumer") -> Iterator[Consumer]:
    """A member that has been assigned partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "client.id": "reader",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        assert consumer.poll(30) is not None
        yield consumer
    finally:
        consumer.close()


def offsets_of(groups: Groups, group: str) -> list[int | None]:
    return [row["committed"] for row in groups("lag", group, "--json").objects if row["type"] == "lag"]


# list, describe


@pytest.mark.parametrize(("protocol", "assignor"), [("classic", "range"), ("consumer", "uniform")])
def test_a_group_is_listed_and_described(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, protocol: str, assignor: str
) -> None:
    with member(broker, group, filled, protocol):
        (listed,) = (row for row in groups("list", "--json").objects if row["group"] == group)
        assert listed == {
            "type": "group",
            "group": group,
            "state": "Stable",
            "protocol": protocol,
            "simple": False,
        }
        (described,) = groups("describe", group, "--json").objects
        (reader,) = described.pop("members")
        assert described == listed | {
            "assignor": assignor,
            "coordinator": {"id": 1, "host": "127.0.0.1", "port": broker.port},
        }
        assert reader.pop("member_id")
        whole = {filled: [0, 1, 2]}
        assert reader == {
            "client_id": "reader",
            "host": "127.0.0.1",
            "instance_id": None,
            "assignment": whole,
            "target_assignment": whole if protocol == "consumer" else None,
        }
        lines = groups("describe", group).out.splitlines()
        assert lines[0].startswith(
            f"{group}  (state Stable, protocol {protocol}, assignor {assignor}, coordinator 1 at "
        )
        assert lines[1].split() == [
            "client",
            "id",
            "host",
            "member",
            "id",
            "instance",
            "id",
            "assignment",
            "target",
            "assignment",
        ]
        assert lines[2].split()[-1] == f"{filled}:0,1,2"


def test_groups_are_listed_by_state_and_type(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, f"{group}-simple", filled, 1)
    with member(broker, group, filled):
        found = {
            filters: {row["group"] for row in groups("list", *filters, "--json").objects if group in row["group"]}
            for filters in [("--state", "empty"), ("--state", "Stable"), ("--type", "classic"), ("--type", "consumer")]
        }
    assert list(found.values()) == [{f"{group}-simple"}, {group}, {f"{group}-simple"}, {group}]
    assert groups("list").out.splitlines()[0].split() == ["group", "state", "protocol"]
    assert groups("list", "--state", "sleepy").status == 2


@pytest.mark.parametrize("name", ["describe", "lag"])
def test_all_groups_are_shown_if_none_is_named(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, name: str
) -> None:
    commit(broker, group, filled, 1)
    assert group in {row["group"] for row in groups(name, "--json").objects}
    assert group in groups(name).out


def test_a_group_that_is_not_there_is_one_sentence(groups: Groups) -> None:
    for name, *rest in (("describe",), ("lag",), ("delete", "--yes"), ("delete-offsets", "--topic", "t", "--yes")):
        outcome = groups(name, "nobody", *rest)
        expected = "lamina: there is no group 'nobody'; `lamina groups list` shows all groups\n"
        assert (outcome.status, outcome.out, outcome.err) == (1, "", expected)


# lag


def test_lag_is_told_by_partition_and_in_total(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, group, filled, 4, 10)
    rows = groups("lag", group, "--json").objects
    nobody = {"client_id": None, "host": None, "member_id": None}
    assert rows == [
        {"type": "lag", "group": group, "topic": filled, "partition": 0, "committed": 4, "latest": 10, "lag": 6}
        | nobody,
        {"type": "lag", "group": group, "topic": filled, "partition": 1, "committed": 10, "latest": 10, "lag": 0}
        | nobody,
        {
            "type": "lag_total",
            "group": group,
            "state": "Empty",
            "lag": 6,
            "partition_count": 2,
            "unknown_count": 0,
        },
    ]
    text = groups("lag", group).out
    assert "Total lag: 6 offsets in 2 partitions\n" in text
    commit(broker, group, filled, 9, 10)
    assert "Total lag: 1 offset in 2 partitions\n" in groups("lag", group).out


def test_partitions_of_members_are_shown_before_anything_is_committed(
    groups: Groups, broker: BrokerProcess, filled: str, group: str
) -> None:
    with member(broker, group, filled):
        *rows, total = groups("lag", group, "--json").objects
    assert [(row["committed"], row["lag"], row["client_id"]) for row in rows] == [(None, None, "reader")] * PARTITIONS
    assert (total["lag"], total["unknown_count"]) == (0, PARTITIONS)


def test_lag_of_one_topic(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, group, filled, 4)
    assert len(groups("lag", group, "--topic", filled, "--json").objects) == 2
    assert len(groups("lag", group, "--topic", "another", "--json").objects) == 1


# reset-offsets


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (["--to-earliest"], [0, 0, 0]),
        (["--to-latest"], [10, 10, 10]),
        (["--to-current"], [4, 7, 10]),
        (["--to-offset", "3"], [3, 3, 3]),
        (["--to-time", str(FIRST_MS + 2500)], [3, 3, 3]),
        (["--to-datetime", "2023-11-14T22:13:21Z"], [1, 1, 1]),
        (["--by-duration", "1d"], [10, 10, 10]),
        (["--by-duration", "P9999D"], [0, 0, 0]),
    ],
)
def test_offsets_are_reset_to_a_place(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, place: list[str], expected: list[int]
) -> None:
    commit(broker, group, filled, 4, 7)
    done = groups("reset-offsets", group, "--topic", filled, *place, "--execute", "--json")
    assert done.status == 0
    assert [(row["committed"], row["offset"], row["executed"]) for row in done.objects] == [
        (before, after, True) for before, after in zip([4, 7, None], expected, strict=True)
    ]
    assert offsets_of(groups, group) == expected


def test_nothing_is_reset_unless_it_is_to_be_executed(
    groups: Groups, broker: BrokerProcess, filled: str, group: str
) -> None:
    commit(broker, group, filled, 4)
    shown = groups("reset-offsets", group, "--all-topics", "--to-latest")
    assert shown.status == 0
    assert shown.out.splitlines()[1].split() == [filled, "0", "4", "10"]
    assert shown.err == f"lamina: nothing was changed; give --execute to reset 1 offset of {group}\n"
    assert offsets_of(groups, group) == [4]


def test_shifting_stays_within_the_partition(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, group, filled, 4, 7)
    back = groups("reset-offsets", group, "--topic", f"{filled}:0,1", "--shift-by", "-5", "--execute")
    assert back.err == f"lamina: {filled}-0 has offsets 0 to 10: using 0 instead of -1\n"
    assert offsets_of(groups, group) == [0, 2]
    nothing = groups("reset-offsets", group, "--topic", f"{filled}:2", "--shift-by", "1", "--execute")
    assert (nothing.status, nothing.out) == (1, "")
    assert "there is no committed offset to shift" in nothing.err


def test_what_is_exported_can_be_read_back(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, tmp_path: Path
) -> None:
    commit(broker, group, filled, 4, 7)
    exported = groups("reset-offsets", group, "--all-topics", "--to-current", "--export")
    assert exported.out == f"{filled},0,4\n{filled},1,7\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported.out)
    commit(broker, group, filled, 9, 9)
    assert groups("reset-offsets", group, "--from-file", file, "--execute").status == 0
    assert offsets_of(groups, group) == [4, 7]
    file.write_text(f'"{group}","{filled}",0,2\n"another","{filled}",0,3\n')
    assert groups("reset-offsets", group, "--from-file", file, "--execute").status == 0
    assert offsets_of(groups, group) == [2, 7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no offset for"),
        ("a,b\n", "is not topic,partition,offset"),
        ("a,0,-1\n", "is not topic,partition,offset"),
        ("a,0,1\na,0,2\n", "it names a-0 twice"),
        ("\udcff", "it is not CSV"),
    ],
)
def test_a_file_that_cannot_be_used_is_bad_input(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(text, errors="surrogateescape")
    outcome = groups("reset-offsets", group, "--from-file", file)
    assert outcome.status == 2
    assert said in outcome.err


def test_a_group_that_nobody_made_can_be_given_offsets(groups: Groups, filled: str, group: str) -> None:
    assert groups("reset-offsets", group, "--topic", filled, "--to-latest", "--execute").status == 0
    assert offsets_of(groups, group) == [10, 10, 10]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_neither_reset_nor_deleted(
    groups: Groups, broker: BrokerProcess, filled: str, group: str, protocol: str
) -> None:
    with member(broker, group, filled, protocol):
        reset = groups("reset-offsets", group, "--topic", filled, "--to-latest", "--execute")
        deleted = groups("delete", group, "--yes")
    assert (reset.status, reset.out) == (1, "")
    assert reset.err.startswith(f"lamina: {group} is active (state Stable, 1 member): stop its members first")
    assert (deleted.status, deleted.out) == (1, "")
    assert "stop its members first" in deleted.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to-latest",),
        ("--topic", "t"),
        ("--topic", "t", "--all-topics", "--to-latest"),
        ("--topic", "t", "--to-latest", "--to-earliest"),
        ("--topic", "t", "--to-latest", "--json", "--export"),
        ("--topic", "t:x", "--to-latest"),
        ("--topic", "t", "--to-time", "soon"),
        ("--topic", "t", "--by-duration", "PT"),
        ("--all-topics", "--from-file", "f"),
    ],
)
def test_what_cannot_be_meant_is_bad_input(groups: Groups, arguments: tuple[str, ...]) -> None:
    assert groups("reset-offsets", "group", *arguments).status == 2


def test_partitions_and_topics_that_are_not_there_are_named(groups: Groups, filled: str, group: str) -> None:
    outcome = groups("reset-offsets", group, "--topic", f"{filled}:0,7", "--topic", "nowhere", "--to-latest", "--json")
    assert outcome.status == 1
    assert [row["partition"] for row in outcome.objects] == [0]
    assert "there is no partition 7; the topic has 3, counted from 0" in outcome.err
    assert "nowhere" in outcome.err


# delete, delete-offsets


def test_a_group_is_deleted_with_its_offsets(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, group, filled, 4)
    assert groups("delete", group).status == 2
    deleted = groups("delete", group, "nobody", "--yes")
    assert (deleted.status, deleted.out) == (1, f"Deleted group {group}.\n")
    assert groups("describe", group).status == 1


def test_offsets_of_some_partitions_are_deleted(groups: Groups, broker: BrokerProcess, filled: str, group: str) -> None:
    commit(broker, group, filled, 4, 5, 6)
    assert groups("delete-offsets", group).status == 2
    assert groups("delete-offsets", group, "--topic", filled).status == 2
    deleted = groups("delete-offsets", group, "--topic", f"{filled}:0,2", "--yes")
    assert (deleted.status, deleted.out) == (
        0,
        f"Deleted the committed offset for {filled}-0.\nDeleted the committed offset for {filled}-2.\n",
    )
    assert offsets_of(groups, group) == [5]
    again = groups("delete-offsets", group, "--topic", f"{filled}:0", "--yes")
    assert (again.status, again.out) == (1, "")
    assert f"{group} has no committed offsets there" in again.err


def test_offsets_of_a_topic_that_is_read_are_not_deleted(
    groups: Groups, broker: BrokerProcess, filled: str, group: str
) -> None:
    with member(broker, group, filled) as reader:
        reader.commit(asynchronous=False)
        outcome = groups("delete-offsets", group, "--topic", filled, "--yes")
    assert (outcome.status, outcome.out) == (1, "")
    assert "stop the members that read it first" in outcome.err
