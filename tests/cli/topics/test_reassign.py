"""``lamina topics reassign``, as far as one broker goes; tests/cluster has replicas that move."""

import json
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "give one of --generate, --execute, --verify, --cancel and --list"),
        (("--list", "--verify", "--file", "f"), "give one of"),
        (("--execute",), "--execute needs --file FILE"),
        (("--verify", "--file", "f", "--throttle", "1"), "--throttle means nothing with --verify"),
        (("--list", "orders"), "TOPIC means nothing with --list"),
        (("--generate", "orders"), "--generate needs --brokers"),
        (("--generate", "--brokers", "1"), "--generate needs one of TOPIC…, --topics-file and --all"),
        (("--generate", "--brokers", "1", "--all", "orders"), "--generate needs one of TOPIC…"),
        (("--generate", "--brokers", "1", "--replication-factor", "0", "orders"), "is not a whole number from 1"),
        (("--list", "--all"), "--all means nothing with --list"),
        (("--generate", "--brokers", "1,x", "orders"), "is not of the form 1,2,3"),
        (("--generate", "--brokers", "1,1", "orders"), "names a broker twice"),
        (("--execute", "--file", "f", "--throttle", "fast"), "is not bytes per second"),
        (("--execute", "--reassignment-json-file", "f"), "give --file FILE"),
        (("--generate", "--broker-list", "1"), "give --brokers 1,2,3"),
    ],
)
def test_a_wrong_command_line_never_reaches_the_broker(lamina: Lamina, args: tuple[str, ...], says: str) -> None:
    outcome = lamina("topics", "reassign", *args, "--bootstrap-server", "127.0.0.1:1")
    assert (outcome.status, outcome.out) == (2, "")
    assert says.lower() in outcome.err.lower()


def test_a_plan_that_changes_nothing_is_complete_at_once(
    lamina: Lamina, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, *where)
    plan = tmp_path / "plan.json"
    generated = lamina("topics", "reassign", "--generate", "--brokers", "1", topic, "--output", plan, *where)
    assert (generated.status, generated.out) == (0, "")
    assert json.loads(plan.read_text())["partitions"][0]["replicas"] == [1]
    executed = lamina("topics", "reassign", "--execute", "--file", plan, "--wait", "--json", *where)
    assert [row["state"] for row in executed.objects if row["type"] == "reassignment"] == ["complete"]


def test_brokers_and_topics_that_are_not_there_are_named(lamina: Lamina, broker: BrokerProcess, topic: str) -> None:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, *where)
    for args, says in (
        (("--brokers", "7", topic), "there is no broker 7"),
        (("--brokers", "1", "nowhere"), "there is no topic 'nowhere'"),
        (("--brokers", "1", "--replication-factor", "2", topic), f"more replicas than brokers are named: {topic}-0"),
    ):
        refused = lamina("topics", "reassign", "--generate", *args, *where)
        assert (refused.status, refused.out) == (1, "")
        assert says in refused.err
