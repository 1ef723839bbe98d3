"""What is said of the brokers of a cluster, from what each of them answers."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lamina import __version__
from lamina.cli.doctor.finding import State
from lamina.cli.doctor.members import MemberFacts, ask_member, judge_members
from lamina.client.admin_listener import AdminListener
from lamina.client.errors import ClientError
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.cluster.ports import free_port
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

ONE = MemberFacts(1, own_id=1, cluster_id="c", version="1.0", clock_error_ms=1.0)
TWO = replace(ONE, id=2, own_id=2)


@contextmanager
def serving(routes: Mapping[str, tuple[int, object]]) -> Iterator[str]:
    """Something that answers HTTP; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, told = routes[self.path]
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def states(*members: MemberFacts) -> dict[str, State]:
    return {finding.name: finding.state for finding in judge_members(members)}


def test_all_is_well() -> None:
    assert states(ONE, TWO) == dict.fromkeys(("brokers", "readiness", "ids", "versions", "clocks"), State.FINE)
    assert states(ONE) == dict.fromkeys(("brokers", "readiness", "ids", "versions"), State.FINE), (
        "one clock agrees with itself"
    )


@pytest.mark.parametrize(
    ("second", "name", "state"),
    [
        (MemberFacts(2, "it hangs"), "brokers", State.WARNING),
        (replace(TWO, complaints=("a disk is offline",)), "readiness", State.WARNING),
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


def test_what_brokers_complain_of_alike_is_told_once() -> None:
    away = ("ZooKeeper does not answer this broker: no metadata changes",)
    found = {one.name: one for one in judge_members([replace(ONE, complaints=away), replace(TWO, complaints=away)])}
    assert found["readiness"].what == f"brokers 1, 2: {away[0]}"
    assert found["readiness"].advice.startswith("start ZooKeeper; ")


def test_for_a_disk_that_is_nearly_full_the_advice_is_to_free_space() -> None:
    full = ("the disk of /logs is nearly full: 5 bytes are free",)
    found = {one.name: one for one in judge_members([replace(ONE, complaints=full)])}
    assert found["readiness"].advice.startswith("free some space")


def test_a_broker_that_is_not_ready_says_why() -> None:
    """By status 503, which is no refusal."""
    told = {"status": "not_ready", "reasons": ["it is stopping"], "warnings": []}
    rows = [{"is_this_broker": True, "node_id": 1, "version": "1", "replication": {"now_ms": 0}}]
    routes = {"/readyz": (503, told), "/healthz": (200, {}), "/v1/brokers": (200, {"cluster_id": "c", "brokers": rows})}
    with serving(routes) as address:
        assert ask_member(1, AdminListener(address)).complaints == ("it is stopping",)
        with pytest.raises(ClientError):
            AdminListener(address).get("readyz")


def test_a_clock_that_is_ahead_of_this_machine_is_measured_within_its_error(broker: BrokerProcess) -> None:
    behind = Clocks(lambda: SYSTEM_CLOCKS.wall_ns() - 5_000_000_000, SYSTEM_CLOCKS.monotonic_ns)
    listener = AdminListener(broker.facts["admin"][0]["url"].removeprefix("http://"))
    found = ask_member(1, listener, behind)
    assert (found.own_id, found.version, found.cluster_id) == (1, __version__, broker.facts["cluster_id"])
    # The broker tells whole milliseconds.
    assert abs(found.clock_ahead_ms - 5000) <= found.clock_error_ms + 1


def test_the_doctor_examines_a_cluster_that_is_named_and_nothing_of_this_machine(
    lamina: Lamina, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = lamina("doctor", "--json", "--bootstrap-server", broker.address)
    told = {row["name"]: row["what"] for row in outcome.objects if row["type"] == "finding"}
    assert told == {
        "brokers": "1 of 1 answer on their admin listeners",
        "readiness": "all are ready, without warnings",
        "ids": f"1 in cluster {broker.facts['cluster_id']}",
        "versions": f"lamina {__version__} everywhere",
    }
    assert outcome.status == 0
    monkeypatch.setenv("LAMINA_BOOTSTRAP_SERVERS", broker.address)
    assert lamina("doctor", "--json").objects[0] == outcome.objects[0]


def test_an_option_about_a_broker_has_the_doctor_examine_both(
    lamina: Lamina, tmp_path_factory: pytest.TempPathFactory
) -> None:
    arguments = ("--json", "--data-dir", tmp_path_factory.mktemp("data"), "--listen", "127.0.0.1:0")
    nobody = f"127.0.0.1:{free_port()}"
    outcome = lamina("doctor", *arguments, "--bootstrap-server", nobody)
    assert outcome.status == 1
    states = {row["name"]: row["state"] for row in outcome.objects if row["type"] == "finding"}
    assert (states["brokers"], states["data directory"]) == ("problem", "fine")
