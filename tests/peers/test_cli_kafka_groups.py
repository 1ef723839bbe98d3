"""``lamina groups`` and ``lamina consume --group`` against a real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.process import eventually
from tests.cli.running import Outcome, run_process
from tests.peers.driver import Driver, Record
from tests.peers.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Run = Callable[..., Outcome]
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def driver(kafka: Kafka) -> Iterator[Driver]:
    with kafka.driver() as connected:
        connected.create_topic("orders", {"retention.ms": "-1"}, partitions=2)
        connected.open_producer("producer", {})
        for partition in range(2):
            connected.send("producer", "orders", [Record(None, b"%d" % n, 1000 * n) for n in range(10)], partition)
        yield connected


@pytest.fixture
def run(kafka: Kafka, driver: Driver) -> Run:
    return lambda *args: run_process(*args, "--bootstrap-server", kafka.bootstrap)


def committed(run: Run, group: str) -> list[Any]:
    return [row["committed"] for row in run("groups", "lag", group, "--json").objects if row["type"] == "lag"]


@PROTOCOLS
def test_a_group_reads_once_and_is_reset_and_deleted(run: Run, protocol: str, tmp_path: Path) -> None:
    group = f"{protocol}-group"
    joined = ("consume", "orders", "--group", group, "--group-protocol", protocol)
    assert len(run(*joined).out.split()) == 20
    assert run(*joined).out == ""
    (described,) = run("groups", "describe", group, "--json").objects
    assert (described["state"], described["protocol"], described["members"]) == ("Empty", protocol, [])
    assert committed(run, group) == [10, 10]
    reset = ("groups", "reset-offsets", group)
    assert run(*reset, "--topic", "orders:0", "--to-offset", "4").status == 0
    assert committed(run, group) == [10, 10]
    assert run(*reset, "--topic", "orders:0", "--to-offset", "4", "--execute").status == 0
    assert run(*reset, "--all-topics", "--shift-by", "-2", "--execute").status == 0
    assert committed(run, group) == [2, 8]
    file = tmp_path / "offsets.csv"
    file.write_text(run(*reset, "--all-topics", "--to-current", "--export").out)
    assert run(*reset, "--topic", "orders", "--to-time", "4500", "--execute").status == 0
    assert committed(run, group) == [5, 5]
    assert run(*reset, "--from-file", file, "--execute").status == 0
    assert committed(run, group) == [2, 8]
    assert len(run(*joined).out.split()) == 10
    assert run("groups", "delete-offsets", group, "--topic", "orders:1", "--yes").status == 0
    assert committed(run, group) == [10]
    assert group in [row["group"] for row in run("groups", "list", "--type", protocol, "--json").objects]
    assert run("groups", "delete", group, "--yes").status == 0
    assert run("groups", "describe", group).status == 1


@PROTOCOLS
def test_an_active_group_is_described_and_left_alone(run: Run, driver: Driver, protocol: str) -> None:
    group = f"active-{protocol}"
    driver.join(group, group, "orders", {"group.protocol": protocol})
    eventually(lambda: len(driver.members()[group].owned) == 2, 60)
    (described,) = run("groups", "describe", group, "--json").objects
    assert (described["state"], described["protocol"]) == ("Stable", protocol)
    (member,) = described["members"]
    assert member["assignment"] == {"orders": [0, 1]}
    for refused in (
        ("reset-offsets", group, "--topic", "orders", "--to-latest", "--execute"),
        ("delete", group, "--yes"),
        ("delete-offsets", group, "--topic", "orders:0", "--yes"),
    ):
        outcome = run("groups", *refused)
        assert outcome.status == 1
        assert outcome.err.count("\n") == 1
        assert "Traceback" not in outcome.err
    driver.leave(group)


def test_a_group_that_is_not_there(run: Run) -> None:
    for name in ("describe", "lag"):
        outcome = run("groups", name, "nobody")
        assert outcome.status == 1
        assert "there is no group 'nobody'" in outcome.err
