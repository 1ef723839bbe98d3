"""``lamina brokers``, and what every command that speaks to a cluster has in common."""

import socket
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina


def test_the_brokers_are_listed(lamina: Lamina, broker: BrokerProcess) -> None:
    outcome = lamina("brokers", "--bootstrap-server", broker.address)
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["id", "address", "rack", "controller"]
    assert lines[1].split() == ["1", broker.address, "yes"]
    assert lines[2] == f"cluster {broker.facts['cluster_id']}"


def test_as_json(lamina: Lamina, broker: BrokerProcess) -> None:
    assert lamina("brokers", "--bootstrap-server", broker.address, "--json").objects == [
        {
            "type": "broker",
            "id": 1,
            "host": "127.0.0.1",
            "port": broker.port,
            "rack": None,
            "controller": True,
            "cluster_id": broker.facts["cluster_id"],
        }
    ]


def test_options_in_front_of_a_command_are_not_lost_silently(lamina: Lamina) -> None:
    outcome = lamina("brokers", "--bootstrap-server", "127.0.0.1:1", "rebalance")
    assert (outcome.status, outcome.out) == (2, "")
    assert "put the options behind `rebalance`" in outcome.err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("drain",), "missing argument 'ID'"),
        (("drain", "two"), "is not a whole number"),
        (("drain", "2", "--throttle", "1"), "no such option"),
        (("decommission", "2", "--unregister", "--no-wait"), "--unregister has to wait"),
        (("rebalance", "--throttle", "0"), "is not bytes per second"),
        (("balance",), "did you mean `lamina brokers rebalance`?"),
    ],
)
def test_a_wrong_command_line_never_reaches_a_broker(lamina: Lamina, args: tuple[str, ...], says: str) -> None:
    outcome = lamina("brokers", *args, *(("--bootstrap-server", "127.0.0.1:1") if args != ("balance",) else ()))
    assert (outcome.status, outcome.out) == (2, "")
    assert says in outcome.err


def test_one_broker_has_nothing_to_rebalance_and_nobody_to_hand_over_to(
    lamina: Lamina, broker: BrokerProcess, topic: str
) -> None:
    where = ("--yes", "--bootstrap-server", broker.address)
    lamina("topics", "create", topic, *where[1:])
    assert "spread evenly already" in lamina("brokers", "rebalance", *where).err
    for command, says in (("drain", "nobody else keeps"), ("decommission", "the other brokers keep all")):
        refused = lamina("brokers", command, "1", *where)
        assert (refused.status, refused.out) == (1, "")
        assert says in refused.err


def test_the_environment_names_the_cluster(
    lamina: Lamina, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_BOOTSTRAP_SERVERS", broker.address)
    assert lamina("brokers").status == 0


def test_a_properties_file_names_the_cluster_and_the_flag_wins(
    lamina: Lamina, broker: BrokerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.address}\nkey.serializer=x\n")
    assert lamina("brokers", "--command-config", file).status == 0
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    assert lamina("brokers", "--command-config", file, "--bootstrap-server", broker.address).status == 0


def test_a_cluster_that_cannot_be_reached_ends_with_status_3(lamina: Lamina) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        outcome = lamina("brokers", "--bootstrap-server", f"127.0.0.1:{taken.getsockname()[1]}")
    assert outcome.status == 3
    assert outcome.err.count("\n") == 1
    assert "lamina serve" in outcome.err


def test_properties_that_cannot_be_used_end_with_status_2(lamina: Lamina, tmp_path: Path) -> None:
    assert lamina("brokers", "--command-config", tmp_path / "missing").status == 2
    file = tmp_path / "client.properties"
    file.write_text("a=\\u12\n")
    outcome = lamina("brokers", "--command-config", file)
    assert outcome.status == 2
    assert "line 1" in outcome.err
