"""``lamina brokers`` and ``lamina topics reassign`` against three brokers of a real Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lamina.cluster.ports import free_port
from tests.broker.process import eventually
from tests.cli.running import Outcome, run_process
from tests.peers.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Run = Callable[..., Outcome]

BROKERS = (1, 2, 3)
WAIT_SECONDS = 60.0


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Every broker is a voter too."""
    root = tmp_path_factory.mktemp("kafkas")
    ports = {broker: free_port() for broker in BROKERS}
    voters = ",".join(f"{broker}@127.0.0.1:{port}" for broker, port in ports.items())
    settings = {"controller.quorum.voters": voters, "auto.create.topics.enable": "false"}
    with ExitStack() as started:
        members = [
            Kafka(root / f"broker-{broker}", {**settings, "node.id": str(broker)}, controller_port=port)
            for broker, port in ports.items()
        ]
        for member in members:
            started.callback(member.kill)
            member.format()
            member.launch()
        for member in members:
            member.await_start()
        yield ",".join(member.bootstrap for member in members)


@pytest.fixture
def run(bootstrap: str) -> Run:
    return lambda *args: run_process(*args, LAMINA_BOOTSTRAP_SERVERS=bootstrap)


@pytest.fixture
def admin(bootstrap: str) -> Iterator[AdminClient]:
    """Its topics are gone afterwards."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    yield admin
    names = list(admin.list_topics(timeout=WAIT_SECONDS).topics)
    for future in admin.delete_topics(names).values() if names else ():
        future.result(WAIT_SECONDS)
    eventually(lambda: not admin.list_topics(timeout=WAIT_SECONDS).topics, WAIT_SECONDS)


def create(admin: AdminClient, topic: str, *replicas: list[int]) -> None:
    new = NewTopic(topic, len(replicas), replica_assignment=[*replicas])
    admin.create_topics([new])[topic].result(WAIT_SECONDS)
    eventually(lambda: sorted(leaders(admin, topic)) == sorted(ids[0] for ids in replicas), WAIT_SECONDS)


def fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(3):
        producer.produce(topic, b"x" * 900_000, partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


def leaders(admin: AdminClient, topic: str) -> list[int]:
    found = admin.list_topics(timeout=WAIT_SECONDS).topics.get(topic)
    return [] if found is None else [int(one.leader) for _, one in sorted(found.partitions.items())]


def replicas(admin: AdminClient, topic: str) -> list[tuple[int, ...]]:
    found = admin.list_topics(timeout=WAIT_SECONDS).topics[topic].partitions
    return [tuple(one.replicas) for _, one in sorted(found.items())]


def test_replicas_are_spread_under_a_throttle(run: Run, admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic, *[[1, 2]] * 6)
    fill(bootstrap, topic)
    done = run("brokers", "rebalance", "--yes", "--throttle", "50MB", "--json")
    assert (done.status, done.objects[-1]["state"]) == (0, "complete"), done.err
    eventually(lambda: Counter(leaders(admin, topic)) == {1: 2, 2: 2, 3: 2}, WAIT_SECONDS)
    assert Counter(one for ids in replicas(admin, topic) for one in ids) == {1: 4, 2: 4, 3: 4}
    assert "throttled" not in run("configs", "get", "--topic", topic).out
    assert "throttled" not in run("configs", "get", "--broker", "1").out


def test_a_broker_is_drained(run: Run, admin: AdminClient, topic: str) -> None:
    create(admin, topic, [2, 1, 3], [2, 3, 1], [1, 2, 3])
    done = run("brokers", "drain", "2", "--yes")
    assert done.status == 0, done.err
    eventually(lambda: 2 not in leaders(admin, topic), WAIT_SECONDS)
    assert {ids[-1] for ids in replicas(admin, topic)[:2]} == {2}


def test_a_broker_is_emptied(run: Run, admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic, [3, 1], [1, 2], [2, 3])
    fill(bootstrap, topic)
    done = run("brokers", "decommission", "3", "--yes", "--json")
    assert (done.status, done.objects[-1]["broker"]) == (0, 3), done.err
    assert not any(3 in ids for ids in replicas(admin, topic))


def test_a_plan_is_generated_begun_and_cancelled(run: Run, admin: AdminClient, topic: str, tmp_path: Path) -> None:
    create(admin, topic, [1], [2])
    plan = ("--file", tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text(run("topics", "reassign", "--generate", "--brokers", "3", topic).out)
    assert run("topics", "reassign", "--execute", *plan, "--wait").status == 0
    assert replicas(admin, topic) == [(3,), (3,)]
    assert run("topics", "reassign", "--verify", *plan).status == 0
    assert "nothing of this plan is under way" in run("topics", "reassign", "--cancel", *plan).err
