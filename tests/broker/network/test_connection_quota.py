"""Who may connect, decided without sockets and without waiting."""

import logging

import pytest

from lamina.broker.network.connection_quota import UNTIL_ONE_LEAVES, ConnectionQuota
from lamina.broker.network.refusal_lines import RefusalLines
from lamina.settings.connection_limits import ConnectionLimits, ListenerLimits, connection_limits
from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker

TWO = ("PLAINTEXT", "CLIENTS")


def test_without_limits_everybody_comes() -> None:
    quota = ConnectionQuota(ConnectionLimits(), ("PLAINTEXT",))
    for number in range(10_000):
        assert quota.wait_seconds("PLAINTEXT", 0.0) == 0
        assert quota.add("PLAINTEXT", f"10.0.{number % 7}.1") is None
    assert quota.count == 10_000


def test_at_max_connections_the_next_waits_until_one_leaves() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_connections=2), ("PLAINTEXT",))
    for _ in range(2):
        assert quota.wait_seconds("PLAINTEXT", 0.0) == 0
        assert quota.add("PLAINTEXT", "10.0.0.1") is None
    assert quota.wait_seconds("PLAINTEXT", 1e9) == UNTIL_ONE_LEAVES
    quota.remove("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 1e9) == 0


def test_one_address_is_turned_away_beyond_its_limit_and_others_are_not() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_per_ip=1, per_host={"10.0.0.2": 2, "10.0.0.3": 0}), ("PLAINTEXT",))
    assert quota.add("PLAINTEXT", "10.0.0.1") is None
    assert quota.add("PLAINTEXT", "10.0.0.1") == 1
    assert [quota.add("PLAINTEXT", "10.0.0.2") for _ in range(3)] == [None, None, 2]
    assert quota.add("PLAINTEXT", "10.0.0.3") == 0
    assert (quota.count, quota.refused_per_ip) == (3, 3)
    quota.remove("PLAINTEXT", "10.0.0.1")
    assert quota.add("PLAINTEXT", "10.0.0.1") is None


def test_an_ipv4_address_is_the_same_over_ipv6() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_per_ip=1, per_host={"10.0.0.2": 0}), ("PLAINTEXT",))
    assert quota.add("PLAINTEXT", "::ffff:10.0.0.1") is None
    assert quota.add("PLAINTEXT", "10.0.0.1") == 1
    assert quota.add("PLAINTEXT", "::ffff:10.0.0.2") == 0
    quota.remove("PLAINTEXT", "10.0.0.1")
    assert quota.count == 0


def test_a_hosts_name_counts_once_its_address_is_known() -> None:
    limits = ConnectionLimits(per_host={"producer.test": 0})
    quota = ConnectionQuota(limits, ("PLAINTEXT",))
    assert quota.add("PLAINTEXT", "10.0.0.9") is None
    quota.configure(limits, {"producer.test": "10.0.0.9"})
    assert quota.add("PLAINTEXT", "10.0.0.9") == 0


def test_the_rate_lets_a_second_of_connections_through_and_then_one_after_the_other() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_creation_rate=10), ("PLAINTEXT",))
    for _ in range(10):
        assert quota.wait_seconds("PLAINTEXT", 100.0) == 0
        quota.add("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 100.0) == pytest.approx(0.1)
    assert quota.wait_seconds("PLAINTEXT", 100.05) == pytest.approx(0.05)
    assert quota.wait_seconds("PLAINTEXT", 100.11) == 0
    quota.add("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 100.11) == pytest.approx(0.09)


def test_silence_saves_up_one_second_and_no_more() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_creation_rate=2), ("PLAINTEXT",))
    assert quota.wait_seconds("PLAINTEXT", 1.0) == 0
    assert quota.wait_seconds("PLAINTEXT", 1000.0) == 0
    quota.add("PLAINTEXT", "10.0.0.1")
    quota.add("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 1000.0) > 0


def test_those_who_are_turned_away_count_for_the_rate_too() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_creation_rate=1, max_per_ip=0), ("PLAINTEXT",))
    assert quota.wait_seconds("PLAINTEXT", 5.0) == 0
    assert quota.add("PLAINTEXT", "10.0.0.1") == 0
    assert quota.wait_seconds("PLAINTEXT", 5.0) == 1


def test_a_rate_of_nothing_lets_nobody_in() -> None:
    assert ConnectionQuota(ConnectionLimits(max_creation_rate=0)).wait_seconds("PLAINTEXT", 9.0) == UNTIL_ONE_LEAVES


def test_brokers_come_in_beside_others_and_one_of_those_has_to_go() -> None:
    limits = ConnectionLimits(max_connections=1, max_creation_rate=1)
    quota = ConnectionQuota(limits, TWO)
    assert quota.add("CLIENTS", "10.0.0.1") is None
    assert quota.wait_seconds("CLIENTS", 0.0) == UNTIL_ONE_LEAVES
    assert quota.wait_seconds("PLAINTEXT", 0.0) == 0
    assert quota.excess == 0
    quota.add("PLAINTEXT", "10.0.0.2")
    assert quota.excess == 1
    quota.remove("CLIENTS", "10.0.0.1")
    quota.add("PLAINTEXT", "10.0.0.2")
    assert quota.excess == 0, "nobody is left but brokers"


def test_a_lone_listener_is_not_the_brokers_own() -> None:
    quota = ConnectionQuota(ConnectionLimits(max_connections=0), ("PLAINTEXT",))
    assert quota.wait_seconds("PLAINTEXT", 0.0) == UNTIL_ONE_LEAVES


def test_a_listener_may_have_limits_of_its_own_and_the_brokers_too() -> None:
    own = {"PLAINTEXT": ListenerLimits(max_connections=1), "CLIENTS": ListenerLimits(max_creation_rate=1)}
    quota = ConnectionQuota(ConnectionLimits(per_listener=own), TWO)
    assert quota.wait_seconds("PLAINTEXT", 0.0) == 0
    quota.add("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 0.0) == UNTIL_ONE_LEAVES
    assert quota.wait_seconds("CLIENTS", 0.0) == 0
    quota.add("CLIENTS", "10.0.0.1")
    assert quota.wait_seconds("CLIENTS", 0.25) == pytest.approx(0.75)
    quota.remove("PLAINTEXT", "10.0.0.1")
    assert quota.wait_seconds("PLAINTEXT", 0.25) == 0


def test_limits_that_sink_leave_an_excess() -> None:
    quota = ConnectionQuota(ConnectionLimits(), ("PLAINTEXT",))
    for _ in range(5):
        quota.add("PLAINTEXT", "10.0.0.1")
    quota.configure(ConnectionLimits(max_connections=2), {})
    assert quota.excess == 3


def test_limits_are_read_from_the_settings() -> None:
    settings = resolve_broker(
        sets={
            "max.connections": "10",
            "max.connections.per.ip": "0",
            "max.connections.per.ip.overrides": "127.0.0.1:200, a.test:7,[::1]:3",
            "max.connection.creation.rate": "5",
            "inter.broker.listener.name": "plaintext",
            "listener.name.plaintext.max.connections": "7",
        }
    )
    hosts = {"127.0.0.1": 200, "a.test": 7, "::1": 3}
    assert connection_limits(settings) == ConnectionLimits(
        10, 0, 5, hosts, "PLAINTEXT", {"PLAINTEXT": ListenerLimits(max_connections=7)}
    )
    assert settings.warnings == ()


def test_a_bad_limit_of_a_listener_is_named_in_full() -> None:
    with pytest.raises(SettingError, match=r"^listener\.name\.plaintext\.max\.connections = -1: must be at least 0"):
        resolve_broker(sets={"listener.name.plaintext.max.connections": "-1"})


@pytest.mark.parametrize("overrides", ["127.0.0.1", ":5", "a:b", "a:-1", "a:1,,b:2", "a:99999999999", "a:１"])
def test_an_override_that_makes_no_sense_stops_the_start(overrides: str) -> None:
    with pytest.raises(SettingError, match="must have the form host:number"):
        resolve_broker(sets={"max.connections.per.ip.overrides": overrides})


def test_a_broker_to_which_nobody_could_connect_does_not_start() -> None:
    with pytest.raises(SettingError, match="no client could connect"):
        resolve_broker(sets={"max.connections.per.ip": "0"})


def test_a_flood_is_told_in_a_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    lines = RefusalLines(logging.getLogger("test"))
    for number in range(100):
        lines.say("no", 50.0 + number / 1000)
    lines.say("no again", 51.5)
    assert [record.getMessage() for record in caplog.records] == ["no", "no again (99 more since the last such line)"]


def test_a_few_lines_may_come_together(caplog: pytest.LogCaptureFixture) -> None:
    lines = RefusalLines(logging.getLogger("test"), at_a_time=3)
    for number in range(10):
        lines.say(f"no {number}", 50.0)
    lines.say("no again", 51.0)
    lines.say("and again", 51.0)
    assert caplog.messages == ["no 0", "no 1", "no 2", "no again (7 more since the last such line)", "and again"]
