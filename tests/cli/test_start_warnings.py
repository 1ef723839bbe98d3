"""What an operator is warned of before anything is opened."""

import pytest

from lamina.cli.serve.start_lines import how_to_connect, log_warnings
from lamina.settings.authorization import STANDARD_AUTHORIZER
from lamina.settings.listeners import listeners
from lamina.settings.resolve import resolve_broker

MEMBER = {"zookeeper.connect": "zk:2181", "lamina.admin.listeners": ""}
ONE = {"listeners": "ALL://127.0.0.1:9092", "inter.broker.listener.name": "ALL"}
LOGIN = {
    "listener.security.protocol.map": "ALL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.all.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=b password=p user_b=p;"
    ),
}
PLAIN = {"listener.security.protocol.map": "ALL:PLAINTEXT"}
RULES = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}


@pytest.mark.parametrize(
    ("given", "who"),
    [
        (PLAIN, "any client that is let in"),
        (LOGIN, "whoever logs in as a broker"),
        (PLAIN | RULES, "whoever is a super user or may do ClusterAction"),
        (LOGIN | RULES, "whoever is a super user or may do ClusterAction"),
    ],
)
def test_who_can_pose_as_a_broker_where_clients_have_the_same_listener_s49(
    given: dict[str, str], who: str, caplog: pytest.LogCaptureFixture
) -> None:
    log_warnings(resolve_broker(file=MEMBER | ONE | given))
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(
        f"ALL is the listener of clients and of brokers: {who} there can pose as a broker, and ask as"
    )


def test_a_listener_of_their_own_deserves_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    log_warnings(resolve_broker(file=MEMBER | RULES | {"listeners": "PLAINTEXT://127.0.0.1:9092"}))
    assert not caplog.records


def test_that_everybody_may_alter_a_cluster_without_rules_s51(caplog: pytest.LogCaptureFixture) -> None:
    everybody = {"allow.everyone.if.no.acl.found": "true", "lamina.admin.listeners": ""}
    log_warnings(resolve_broker(file=everybody | RULES))
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == (
        "allow.everyone.if.no.acl.found: while there is no rule about the cluster, everybody may alter it, and its "
        "access rules"
    )
    log_warnings(resolve_broker(file=everybody))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("listener", "address", "options"),
    [
        ("PLAINTEXT://127.0.0.1:9092", "127.0.0.1:9092", ""),
        ("PLAINTEXT://127.0.0.1:9093", "127.0.0.1:9093", " --bootstrap-server 127.0.0.1:9093"),
        ("SASL_PLAINTEXT://127.0.0.1:9092", "127.0.0.1:9092", " --command-config FILE"),
    ],
)
def test_what_to_try_first_connects_as_the_listener_wants_it(listener: str, address: str, options: str) -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=p;"
    given = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": login}
    (one,) = listeners(resolve_broker(file={"listeners": listener} | (given if "SASL" in listener else {})))
    assert how_to_connect(one, address) == options
