"""A cluster's processes, as any process sees them that knows the directory."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from lamina.cluster.broker_status import BrokerState, BrokerStatus
from lamina.cluster.errors import ClusterError
from lamina.cluster.layout import broker_name
from lamina.cluster.local_cluster import LocalCluster
from lamina.cluster.state import BrokerPlace, ClusterState, write_state
from tests.cluster.conftest import NO_SPARK


def states(cluster: LocalCluster) -> list[BrokerState]:
    return [broker.state for broker in cluster.brokers()]


def test_a_cluster_lives_and_is_changed_by_whoever_knows_its_directory(cluster: LocalCluster) -> None:
    """One story, for a start takes seconds."""
    told: list[str] = []
    cluster.up(2, 0, NO_SPARK, told.append)
    elsewhere = LocalCluster(cluster.directory)
    first, second = elsewhere.brokers()
    assert states(elsewhere) == [BrokerState.RUNNING] * 2
    assert told[-1] == "broker 2 is ready"

    # It runs: nobody starts it a second time.
    with pytest.raises(ClusterError, match=rf"broker 1, process {first.pid}; broker 2.*; ZooKeeper, process"):
        elsewhere.up(None, None, {})

    # One that is killed is dead, the other goes on; one that is stopped is stopped.
    assert elsewhere.kill_broker(1) == first.pid
    assert states(cluster) == [BrokerState.DEAD, BrokerState.RUNNING]
    with pytest.raises(ClusterError, match=r"^broker 1 is not running: start it with `lamina cluster restart 1"):
        elsewhere.kill_broker(1)
    elsewhere.stop_broker(2)
    assert states(cluster) == [BrokerState.DEAD, BrokerState.STOPPED]
    assert (cluster.layout.data("broker-2") / "logs/.kafka_cleanshutdown").exists()

    # Restarted on the same port and data; one more gets the next id.
    again = elsewhere.restart_broker(1)
    assert again.address == first.address
    assert again.pid != first.pid
    added = elsewhere.add_broker()
    assert (added.id, added.state) == (3, BrokerState.RUNNING)
    assert states(cluster) == [BrokerState.RUNNING, BrokerState.STOPPED, BrokerState.RUNNING]

    # ZooKeeper goes and comes back where it was.
    pid, address = elsewhere.zookeeper_pid(), elsewhere.zookeeper_address()
    assert elsewhere.kill_zookeeper() == pid
    with pytest.raises(ClusterError, match=r"^ZooKeeper is not running: start it with `lamina cluster restart zoo"):
        elsewhere.add_broker()
    assert elsewhere.restart_zookeeper() != pid
    assert elsewhere.zookeeper_address() == address

    # The end of it, and its next life.
    elsewhere.stop()
    assert not cluster.is_running()
    cluster.up(None, None, {})
    assert [broker.address for broker in cluster.brokers()] == [first.address, second.address, added.address]
    assert states(cluster) == [BrokerState.RUNNING] * 3
    cluster.stop()
    assert not cluster.is_running()


def test_a_broker_that_cannot_start_says_why_and_nothing_is_left(cluster: LocalCluster) -> None:
    cluster.layout.run.mkdir(parents=True)
    cluster.layout.data(broker_name(2)).write_text("in the way")
    with pytest.raises(ClusterError, match=r"^broker 2 did not start: .*broker-2.*\(its log is .*broker-2\.log\)$"):
        cluster.up(2, 0, NO_SPARK)
    assert not cluster.is_running()


def test_a_directory_without_a_cluster(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "nothing")
    for ask in (cluster.brokers, cluster.add_broker, cluster.stop):
        with pytest.raises(ClusterError, match=r"^there is no cluster in .*/nothing: "):
            ask()


@pytest.mark.parametrize("left", ["metadata.db", "cluster.properties", "meta.properties", "logs/meta.properties"])
def test_no_empty_cluster_is_started_over_the_records_of_one_broker(tmp_path: Path, left: str) -> None:
    (tmp_path / left).parent.mkdir(exist_ok=True)
    (tmp_path / left).touch()
    cluster = LocalCluster(tmp_path)
    for start in (lambda: cluster.check(3, 0, {}), lambda: cluster.up(3, 0, {})):
        with pytest.raises(ClusterError, match=r"has the records of one broker.*`lamina cluster adopt`"):
            start()
    assert not cluster.layout.state.exists()


def test_only_one_process_supervises(cluster: LocalCluster) -> None:
    with cluster.supervised():
        assert cluster.supervisor_pid() == os.getpid()
        with (
            pytest.raises(ClusterError, match=rf"`lamina cluster up`, process {os.getpid()}"),
            LocalCluster(cluster.directory).supervised(),
        ):
            pass
    assert cluster.supervisor_pid() is None


def test_who_waits_for_another_change_is_told(cluster: LocalCluster) -> None:
    cluster.layout.run.mkdir(parents=True)
    write_state(cluster.layout.state, ClusterState(1, {1: BrokerPlace(9092)}))
    held = os.open(cluster.layout.change_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    told: list[str] = []

    def hear(sentence: str) -> None:
        told.append(sentence)
        os.close(held)

    with pytest.raises(ClusterError, match=r"is not running"):
        cluster.stop_broker(1, hear)
    assert told == ["another command is changing the cluster: waiting until it is done"]


def test_whether_a_broker_keeps_anything_is_asked_while_nobody_else_changes_the_cluster(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.layout.run.mkdir(parents=True)
    write_state(cluster.layout.state, ClusterState(1, {1: BrokerPlace(9092), 2: BrokerPlace(9093)}))
    running = [BrokerStatus(1, "127.0.0.1:9092", BrokerState.RUNNING, 4711)]
    monkeypatch.setattr(cluster, "brokers", lambda: running)
    asked: list[str] = []

    def check() -> None:
        other = os.open(cluster.layout.change_lock, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        asked.append("it keeps something")
        raise ClusterError(asked[-1])

    with pytest.raises(ClusterError, match="it keeps something"):
        cluster.remove_broker(2, check)
    assert set(cluster.state().brokers) == {1, 2}
    cluster.remove_broker(2, lambda: None)
    assert set(cluster.state().brokers) == {1}


def test_nobody_starts_a_broker_without_a_zookeeper(cluster: LocalCluster) -> None:
    cluster.up(1, 0, NO_SPARK)
    pid = cluster.zookeeper_pid()
    assert pid is not None
    cluster.stop()
    with pytest.raises(ClusterError, match="is not running: start it with `lamina cluster up"):
        cluster.restart_broker(1)
    for kill in (lambda: cluster.kill_broker(1), lambda: cluster.stop_broker(1), cluster.kill_zookeeper):
        with pytest.raises(ClusterError, match="is not running: start it with `lamina cluster up"):
            kill()
    with pytest.raises(ClusterError, match="there is no broker 4: there is only broker 1"):
        cluster.kill_broker(4)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)
