"""What a cluster is started as, from what was and what is asked for."""

import socket
from dataclasses import replace

import pytest

from lamina.cluster.broker_settings import warnings_of
from lamina.cluster.errors import ClusterError
from lamina.cluster.plan import plan
from lamina.cluster.state import BrokerPlace, ClusterState
from lamina.settings.definition import SettingError

PORT = 19092
BEFORE = ClusterState(1, {1: BrokerPlace(PORT, is_stopped=True)}, {"num.partitions": "3"})


@pytest.fixture
def _free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else runs on this machine."""
    monkeypatch.setattr("lamina.cluster.plan.is_free", lambda port: True)


def test_three_brokers_keep_three_copies_of_which_two_must_have_a_record() -> None:
    settings = plan(None, 3, 0, {}).settings
    assert settings["default.replication.factor"] == settings["offsets.topic.replication.factor"] == "3"
    assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == "2"


@pytest.mark.parametrize("brokers", [1, 2])
def test_fewer_brokers_keep_as_many_copies_and_go_on_with_one(brokers: int) -> None:
    settings = plan(None, brokers, 0, {}).settings
    assert settings["default.replication.factor"] == str(brokers)
    assert settings["min.insync.replicas"] == "1"


def test_a_setting_that_is_given_wins_and_stays() -> None:
    state = plan(None, 1, 0, {"default.replication.factor": "1", "num.partitions": "6"})
    assert plan(state, None, None, {"num.partitions": "7"}).settings == {**state.settings, "num.partitions": "7"}


@pytest.mark.usefixtures("_free_ports")
def test_brokers_keep_their_ports_and_what_was_stopped_is_started_again() -> None:
    again = plan(BEFORE, None, None, {})
    assert again.brokers == {1: BrokerPlace(PORT)}


@pytest.mark.usefixtures("_free_ports")
def test_more_brokers_than_before_get_the_next_ports() -> None:
    assert plan(BEFORE, 2, None, {}).brokers == {1: BrokerPlace(PORT), 2: BrokerPlace(PORT + 1)}


@pytest.mark.usefixtures("_free_ports")
def test_a_broker_that_was_removed_does_not_come_back() -> None:
    left = plan(BEFORE, 3, None, {}).without_broker(2)
    assert plan(left, None, None, {}).brokers == {1: BrokerPlace(PORT), 3: BrokerPlace(PORT + 2)}
    assert plan(left, 3, 20000, {}).brokers == {1: BrokerPlace(20000), 3: BrokerPlace(20002), 4: BrokerPlace(20003)}


@pytest.mark.usefixtures("_free_ports")
def test_fewer_brokers_than_before_are_refused() -> None:
    two = plan(BEFORE, 2, None, {})
    with pytest.raises(ClusterError, match="has 2 brokers"):
        plan(two, 1, None, {})


def test_a_port_that_is_taken_is_named_with_its_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=rf"^port {port}, which broker 1 would get, is taken"):
            plan(None, 1, port, {})


# Settings


def test_a_value_that_no_broker_starts_with_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^min\.insync\.replicas = banana"):
        plan(None, 1, 0, {"min.insync.replicas": "banana"})


@pytest.mark.parametrize("name", ["node.id", "listeners", "log.dirs", "zookeeper.connect"])
def test_what_each_broker_gets_from_the_cluster_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match=rf"^{name} is given by lamina cluster: leave it out$"):
        plan(None, 1, 0, {name: "7"})


def test_a_name_without_effect_is_warned_of_once_and_not_kept() -> None:
    assert warnings_of({"foo": "bar", "num.partitions": "6"}) == ["foo: unknown"]
    settings = plan(None, 1, 0, {"foo": "bar", "num.partitions": "6"}).settings
    assert settings["num.partitions"] == "6"
    assert "foo" not in settings


def test_settings_are_checked_together_with_those_that_are_kept() -> None:
    """The default of the longest session is below this one."""
    state = plan(None, 1, 0, {"group.consumer.max.session.timeout.ms": "120000"})
    plan(state, None, None, {"group.consumer.session.timeout.ms": "100000"})
    with pytest.raises(SettingError, match=r"must be at most group\.consumer\.max\.session\.timeout\.ms = 60000"):
        plan(None, 1, 0, {"group.consumer.session.timeout.ms": "100000"})


@pytest.mark.usefixtures("_free_ports")
def test_a_directory_that_an_older_lamina_spoilt_is_healed() -> None:
    spoilt = replace(BEFORE, settings={"node.id": "7", "min.insync.replicas": "banana"})
    assert plan(spoilt, None, None, {"min.insync.replicas": "1"}).settings == {"min.insync.replicas": "1"}
