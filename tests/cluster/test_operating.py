"""``lamina brokers rebalance``, ``drain`` and ``decommission`` with three real brokers."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from lamina.cli.reassignment.plan_file import read_plan
from lamina.cluster.broker_status import BrokerState
from tests.broker.process import eventually
from tests.cli.running import Lamina, Outcome, started
from tests.cluster.test_reassigning import create, fill, throttles
from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers

pytestmark = pytest.mark.timeout(180)

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    """A client that looks for a deleted topic must not bring it back: these commands are about the whole cluster."""
    settings = {"auto.create.topics.enable": "false"}
    with ThreeBrokers(tmp_path_factory.mktemp("cluster"), settings).running() as brokers:
        yield brokers


@pytest.fixture
def lamina(capsys: pytest.CaptureFixture[str]) -> Lamina:
    return Lamina(capsys)


@pytest.fixture
def operate(lamina: Lamina, brokers: ThreeBrokers) -> Iterator[Run]:
    """The topics of a test are gone afterwards."""
    yield lambda *args: lamina("brokers", *args, "--bootstrap-server", brokers.bootstrap)
    for topic in brokers.topic_names():
        brokers.delete_topic(topic)


def leaders(brokers: ThreeBrokers, topic: str) -> list[int]:
    return [brokers.leader(topic, index) for index in range(len(brokers.replicas(topic)))]


def test_replicas_and_leaders_are_spread_evenly(
    operate: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    create(brokers, topic, *[(1, 2)] * 6)
    fill(brokers, topic, 1)
    shown = operate("rebalance", "--dry-run", "--output", tmp_path / "plan.json")
    assert (shown.status, set(brokers.replicas(topic))) == (0, {(1, 2)})
    assert "4 partitions to copy to other brokers" in shown.err
    plan = read_plan((tmp_path / "plan.json").read_bytes())
    refused = operate("rebalance")
    assert refused.status == 2
    assert "Move replicas and leaders as shown?" in refused.err
    done = operate("rebalance", "--yes", "--throttle", "50MB", "--json")
    assert done.status == 0
    assert {row["type"] for row in done.objects} == {"partition_move", "broker_load", "move_progress", "reassignment"}
    replicas = dict(enumerate(brokers.replicas(topic)))
    assert {(topic, index): replicas[index] for _, index in plan} == plan
    assert Counter(one for ids in replicas.values() for one in ids) == {1: 4, 2: 4, 3: 4}
    assert Counter(leaders(brokers, topic)) == {1: 2, 2: 2, 3: 2}
    assert throttles(brokers, topic) == {}
    again = operate("rebalance", "--yes")
    assert (again.status, again.out) == (0, "")
    assert "spread evenly already" in again.err


def test_a_throttle_of_somebody_else_is_not_removed_without_asking(
    operate: Run, brokers: ThreeBrokers, topic: str
) -> None:
    """Also where only a topic has something of it left, and no broker has a rate."""
    create(brokers, topic, (1, 2), (2, 3), (3, 1))
    throttled = ConfigEntry("leader.replication.throttled.replicas", "*", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", topic, incremental_configs=[throttled])
    brokers.admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)
    kept = {f"{topic} leader.replication.throttled.replicas": "*"}
    left = operate("rebalance")
    assert left.status == 0
    assert f"the replication throttle of topic {topic} stays" in left.err
    assert throttles(brokers, topic) == kept
    create(brokers, other := f"{topic}-other", (1, 2), (1, 2), (1, 2))
    moved = operate("rebalance", "--yes")
    assert (moved.status, throttles(brokers, topic)) == (0, kept)
    assert "this command has not set it" in moved.err
    assert len(set(brokers.replicas(other))) > 1
    assert "removed the throttle" in operate("rebalance", "--yes").err
    assert throttles(brokers, topic) == {}


def test_a_drained_broker_keeps_its_replicas_and_leads_nothing_until_leaders_are_evened_out(
    operate: Run, brokers: ThreeBrokers, topic: str
) -> None:
    create(brokers, topic, (2, 1, 3), (2, 3, 1), (3, 2, 1), (1, 2, 3))
    drained = operate("drain", "2", "--yes")
    assert (drained.status, leaders(brokers, topic).count(2)) == (0, 0)
    assert "broker 2 leads nothing now" in drained.err
    assert {ids[-1] for ids in brokers.replicas(topic)[:2]} == {2}
    assert brokers.in_sync(topic) == [{1, 2, 3}] * 4
    assert "broker 2 leads nothing\n" in operate("drain", "2").err
    assert operate("rebalance", "--leaders", "--yes").status == 0
    assert sorted(Counter(leaders(brokers, topic)).values()) == [1, 1, 2]


def test_a_broker_that_alone_keeps_a_partition_cannot_be_drained(
    operate: Run, brokers: ThreeBrokers, topic: str
) -> None:
    create(brokers, topic, (2,), (1,))
    create(brokers, other := f"{topic}-other", (2, 1))
    refused = operate("drain", "2", "--yes")
    assert refused.status == 1
    assert f"nobody else keeps {topic}-0;" in refused.err
    assert leaders(brokers, other) == [2]
    assert "there is no broker 9" in operate("drain", "9").err


def test_nothing_moves_where_the_other_brokers_are_too_few(operate: Run, brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, (1, 2, 3))
    create(brokers, other := f"{topic}-other", (3,))
    refused = operate("decommission", "3", "--yes")
    assert refused.status == 1
    assert f"the other brokers keep all the replicas that they can of {topic}-0;" in refused.err
    assert (brokers.replicas(topic), brokers.replicas(other)) == ([(1, 2, 3)], [(3,)])


def test_what_a_dead_broker_alone_kept_is_named_and_nothing_begins(
    operate: Run, brokers: ThreeBrokers, topic: str
) -> None:
    create(brokers, topic, (3,), (1,))
    brokers.kill(3)
    eventually(lambda: brokers.leader(topic) == -1, WAIT_SECONDS)
    assert "broker 3 keeps replicas and is not there" in operate("rebalance", "--yes").err
    refused = operate("decommission", "3", "--yes")
    assert refused.status == 1
    assert f"nobody leads {topic}-0, so they cannot be copied" in refused.err
    brokers.restart(3)
    brokers.await_leader(topic)
    assert brokers.replicas(topic) == [(3,), (1,)]


def test_nobody_is_shown_as_the_controller_without_zookeeper(operate: Run, brokers: ThreeBrokers) -> None:
    def controllers() -> list[int]:
        return [row["id"] for row in operate("--json").objects if row["controller"]]

    assert len(controllers()) == 1
    brokers.cluster.kill_zookeeper()
    eventually(lambda: controllers() == [], WAIT_SECONDS)
    assert "no broker is known as the controller now" in operate().err
    brokers.cluster.restart_zookeeper()
    eventually(lambda: len(controllers()) == 1, WAIT_SECONDS)


def test_a_broker_is_emptied_leaves_and_is_forgotten(
    operate: Run, lamina: Lamina, brokers: ThreeBrokers, topic: str
) -> None:
    """Interrupted under a throttle that lets nothing pass, then run again with another one."""
    create(brokers, topic, (3,))
    create(brokers, other := f"{topic}-other", (3, 1), (1, 2))
    fill(brokers, topic, 12)
    assert operate("decommission", "3", "--dry-run", "--throttle", "1").status == 0
    assert throttles(brokers, topic) == {}
    arguments = ("decommission", "3", "--yes", "--throttle", "1000", "--json", "--bootstrap-server", brokers.bootstrap)
    with started("brokers", *arguments) as process:
        assert process.stdout is not None
        assert any(b"move_progress" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 130
    assert b"the cluster goes on; run `lamina brokers decommission 3` again" in err
    assert not brokers.in_sync(topic)[0] - {3}
    ended = operate("decommission", "3", "--yes", "--throttle", "50MB", "--json", "--no-wait")
    assert (ended.status, "run `lamina brokers decommission 3` again" in ended.err) == (0, True)
    ended = operate("decommission", "3", "--yes", "--json")
    assert (ended.status, ended.err.count("removed the throttle")) == (0, 1)
    assert ended.objects[-1] == {"type": "decommission", "broker": 3, "unregistered": False}
    first, second = brokers.replicas(other)
    assert ({*first}, second) == ({1, 2}, (1, 2))
    assert brokers.replicas(topic) != [(3,)]
    assert throttles(brokers, topic) == {}
    assert "broker 3 is unregistered" in operate("decommission", "3", "--unregister", "--yes").err
    eventually(lambda: 3 not in brokers.admin.list_topics(timeout=WAIT_SECONDS).brokers, WAIT_SECONDS)
    eventually(lambda: brokers.cluster.brokers()[2].state is BrokerState.LEFT, WAIT_SECONDS)
    remove = ("cluster", "remove-broker", "--data-dir", brokers.cluster.directory)
    kept = lamina(*remove, "2")
    assert (kept.status, "`lamina brokers decommission 2 --bootstrap-server" in kept.err) == (1, True)
    removed = lamina(*remove, "3")
    assert (removed.status, "default.replication.factor is 3, and the cluster has 2 brokers" in removed.err) == (
        0,
        True,
    )
    made = lamina("topics", "create", "later", "--bootstrap-server", brokers.cluster.bootstrap_servers())
    assert (made.status, "3 needs as many brokers; 2 are registered; that is the brokers' default" in made.err) == (
        1,
        True,
    )
    assert [one.id for one in brokers.cluster.brokers()] == [1, 2]
