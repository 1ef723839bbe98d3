"""``lamina configs``, against a broker in a process of its own."""

from collections.abc import Callable

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def configs(lamina: Lamina, broker: BrokerProcess) -> Run:
    def run(name: str, *args: str) -> Outcome:
        return lamina("configs", name, *args, "--bootstrap-server", broker.address)

    return run


@pytest.fixture
def orders(lamina: Lamina, broker: BrokerProcess, topic: str) -> str:
    assert lamina("topics", "create", topic, "--bootstrap-server", broker.address).status == 0
    return topic


def test_settings_of_a_topic_are_set_shown_and_taken_back(configs: Run, orders: str) -> None:
    outcome = configs("set", "--topic", orders, "retention.ms=5000", "cleanup.policy=compact,delete")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [f"{orders}: retention.ms = 5000", f"{orders}: cleanup.policy = compact,delete"]
    assert configs("get", "--topic", orders).out.splitlines() == [
        "name            value           source",
        "cleanup.policy  compact,delete  DYNAMIC_TOPIC_CONFIG",
        "retention.ms    5000            DYNAMIC_TOPIC_CONFIG",
    ]
    outcome = configs("unset", "--topic", orders, "retention.ms", "cleanup.policy")
    assert outcome.out.splitlines()[0] == f"{orders}: retention.ms is back at its default"
    outcome = configs("get", "--topic", orders)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == f"lamina: every setting of {orders} is at its default; --all shows them\n"


def test_changes_are_told_in_json_too(configs: Run, orders: str) -> None:
    row = {"type": "config_change", "resource_type": "topic", "resource": orders, "name": "retention.ms"}
    assert configs("set", "--topic", orders, "retention.ms=5s", "--json").objects == [{**row, "value": "5000"}]
    assert configs("unset", "--topic", orders, "retention.ms", "--json").objects == [{**row, "value": None}]
    refused = configs("set", "--topic", orders, "retention.ms=-7", "--json")
    assert (refused.status, refused.out) == (1, "")


def test_settings_that_are_named_are_shown_whatever_their_source(configs: Run, orders: str) -> None:
    (row,) = configs("get", "--topic", orders, "retention.ms", "retention.ms", "--json").objects
    assert row == {
        "type": "config",
        "resource_type": "topic",
        "resource": orders,
        "name": "retention.ms",
        "value": "604800000",
        "source": "DEFAULT_CONFIG",
        "default": True,
        "read_only": False,
        "sensitive": False,
        "synonyms": [{"name": "log.retention.hours", "value": "168", "source": "DEFAULT_CONFIG"}],
    }


def test_all_shows_defaults_and_what_a_value_stems_from(configs: Run, orders: str) -> None:
    lines = configs("get", "--topic", orders, "--all").out.splitlines()
    assert len(lines) > 15
    (line,) = (line for line in lines if line.startswith("retention.ms "))
    assert line.endswith("log.retention.hours=168 (DEFAULT_CONFIG)")


def test_unknown_names_get_the_nearest_one(configs: Run, orders: str) -> None:
    outcome = configs("get", "--topic", orders, "retention.m", "retention.ms", "zzzzzz")
    assert outcome.status == 1
    assert len(outcome.out.splitlines()) == 2
    assert outcome.err.splitlines() == [
        f"lamina: {orders}: there is no setting 'retention.m'; did you mean retention.ms?",
        f"lamina: {orders}: there is no setting 'zzzzzz'; `lamina configs get --all` shows every name",
    ]
    outcome = configs("set", "--topic", orders, "retention.m=5")
    assert outcome.status == 1
    assert outcome.err == f"lamina: {orders}: retention.m: unknown, did you mean retention.ms?\n"
    outcome = configs("unset", "--topic", orders, "retention.m")
    assert outcome.status == 1
    assert "did you mean retention.ms?" in outcome.err


def test_one_value_that_is_refused_changes_nothing(configs: Run, orders: str) -> None:
    outcome = configs("set", "--topic", orders, "retention.ms=5000", "segment.ms=-5")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.count("\n") == 1
    assert "segment.ms = -5: must be at least 1" in outcome.err
    assert configs("get", "--topic", orders).out == ""


def test_settings_of_a_broker(lamina: Lamina, own_broker: Callable[..., BrokerProcess]) -> None:
    where = ("--broker", "1", "--bootstrap-server", own_broker().address)
    outcome = lamina("configs", "set", "log.retention.ms=500000", *where)
    assert (outcome.status, outcome.out) == (0, "broker 1: log.retention.ms = 500000\n")
    lines = lamina("configs", "get", *where).out.splitlines()
    assert ["log.retention.ms", "500000", "DYNAMIC_BROKER_CONFIG"] in [line.split() for line in lines]
    assert any(line.startswith("listeners ") and line.endswith("read-only") for line in lines)
    assert lamina("configs", "unset", "log.retention.ms", *where).status == 0
    (row,) = lamina("configs", "get", "log.retention.ms", "--json", *where).objects
    assert (row["resource_type"], row["resource"], row["value"]) == ("broker", "1", "604800000")
    outcome = lamina("configs", "set", "node.id=5", *where)
    assert (outcome.status, outcome.err) == (1, "lamina: broker 1: node.id: cannot change while the broker runs\n")


def test_a_topic_or_a_broker_that_is_not_there(configs: Run) -> None:
    for arguments in (("get",), ("set", "retention.ms=1"), ("unset", "retention.ms")):
        outcome = configs(*arguments, "--topic", "nowhere")
        assert outcome.status == 1
        assert outcome.err == "lamina: there is no topic 'nowhere'; `lamina topics list` shows all topics\n"
        outcome = configs(*arguments, "--broker", "7")
        assert outcome.status == 1
        assert outcome.err == "lamina: there is no broker 7; `lamina brokers` shows all brokers\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("get",),
        ("get", "--topic", "t", "--broker", "1"),
        ("get", "--broker-default", "--broker", "0"),
        ("get", "--topic", ""),
        ("get", "--broker", "one"),
        ("set", "--topic", "t"),
        ("set", "--topic", "t", "retention.ms"),
        ("set", "--topic", "t", "=5"),
        ("unset", "--topic", "t"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(lamina: Lamina, arguments: tuple[str, ...]) -> None:
    outcome = lamina("configs", *arguments, "--bootstrap-server", "127.0.0.1:1")
    assert outcome.status == 2
    assert outcome.err.startswith("lamina: ")
    assert outcome.err.count("\n") == 1


def test_settings_of_all_brokers(lamina: Lamina, own_broker: Callable[..., BrokerProcess]) -> None:
    address = ("--bootstrap-server", own_broker().address)
    where = ("--broker-default", *address)
    outcome = lamina("configs", "get", *where)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.startswith("lamina: every setting of all brokers is at its default")
    outcome = lamina("configs", "set", "log.retention.ms=500000", "log.retention.bytes=2000000", *where)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[0] == "all brokers: log.retention.ms = 500000"
    rows = lamina("configs", "get", "--json", *where).objects
    assert [(row["name"], row["resource"], row["value"], row["source"]) for row in rows] == [
        ("log.retention.bytes", "", "2000000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("log.retention.ms", "", "500000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    ]
    (row,) = lamina("configs", "get", "log.retention.ms", "--json", "--broker", "1", *address).objects
    assert row["value"] == "500000"
    assert lamina("configs", "unset", "log.retention.ms", *where).status == 0
    outcome = lamina("configs", "unset", "log.retention.ms", *where)
    assert outcome.status == 1
    assert "all brokers: log.retention.ms is not set;" in outcome.err
    outcome = lamina("configs", "set", "log.cleanup.policy=tidy", *where)
    assert outcome.status == 1
    assert outcome.err.startswith("lamina: log.cleanup.policy = tidy: must be a list of ")


def test_a_wrong_policy_gets_the_nearest(configs: Run, orders: str) -> None:
    outcome = configs("set", "--topic", orders, "cleanup.policy=compacted")
    assert outcome.status == 1
    assert outcome.err == (
        f"lamina: {orders}: cleanup.policy = compacted: must be a list of compact or delete; did you mean compact?\n"
    )
