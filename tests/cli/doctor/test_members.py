"""What is said of the brokers of a cluster, from what each of them answers."""

from dataclasses import replace

import pytest

from lamina import __version__
from lamina.cli.doctor.finding import State
from lamina.cli.doctor.members import MemberFacts, ask_member, judge_members
from lamina.client.admin_listener import AdminListener
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.cluster.ports import free_port
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

ONE = MemberFacts(1, own_id=1, cluster_id="c", version="1.0", clock_error_ms=1.0)
TWO = replace(ONE, id=2, own_id=2)


def states(*members: MemberFacts) -> dict[str, State]:
    return {finding.name: finding.state for finding in judge_members(members)}


def test_all_is_well() -> None:
    assert states(ONE, TWO) == dict.fromkeys(("brokers", "ids", "versions", "clocks"), State.FINE)
    assert states(ONE) == dict.fromkeys(("brokers", "ids", "versions"), State.FINE), "one clock agrees with itself"


@pytest.mark.parametrize(
    ("second", "name", "state"),
    [
        (MemberFacts(2, "it hangs"), "brokers", State.WARNING),
        (replace(TWO, own_id=1), "ids", State.PROBLEM),
        (replace(TWO, cluster_id="d"), "ids", State.PROBLEM),
        (replace(TWO, version="1.1"), "versions", State.WARNING),
        (replace(TWO, clock_ahead_ms=1500.0), "clocks", State.WARNING),
        (replace(TWO, clock_ahead_ms=-1500.0), "clocks", State.WARNING),
        (replace(TWO, clock_ahead_ms=1500.0, clock_error_ms=600.0), "clocks", State.FINE),
    ],
)
def test_each_trouble_is_found_and_alone(second: MemberFacts, name: str, state: State) -> None:
    found = states(ONE, second)
    assert found.pop(name) is state
    assert set(found.values()) == {State.FINE}


def test_a_clock_that_is_ahead_of_this_machine_is_measured_within_its_error(broker: BrokerProcess) -> None:
    behind = Clocks(lambda: SYSTEM_CLOCKS.wall_ns() - 5_000_000_000, SYSTEM_CLOCKS.monotonic_ns)
    listener = AdminListener(broker.facts["admin"][0]["url"].removeprefix("http://"))
    found = ask_member(1, listener, behind)
    assert (found.own_id, found.version, found.cluster_id) == (1, __version__, broker.facts["cluster_id"])
    # The broker tells whole milliseconds.
    assert abs(found.clock_ahead_ms - 5000) <= found.clock_error_ms + 1


def test_the_doctor_asks_a_cluster_that_is_named(
    lamina: Lamina, broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    arguments = ("--json", "--data-dir", tmp_path_factory.mktemp("data"), "--listen", "127.0.0.1:0")
    rows = lamina("doctor", *arguments, "--bootstrap-server", broker.address).objects
    told = {row["name"]: row["what"] for row in rows if row["type"] == "finding"}
    assert told["brokers"] == "1 of 1 answer on their admin listeners"
    assert told["ids"] == f"1 in cluster {broker.facts['cluster_id']}"
    assert told["versions"] == f"lamina {__version__} everywhere"
    nobody = f"127.0.0.1:{free_port()}"
    outcome = lamina("doctor", *arguments, "--bootstrap-server", nobody)
    assert outcome.status == 1
    assert any(row.get("name") == "brokers" and row["state"] == "problem" for row in outcome.objects)
