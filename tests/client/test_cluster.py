"""Reaching a cluster, or being told why not."""

import socket
from concurrent.futures import Future
from pathlib import Path

import pytest

from lamina.client.cluster import Cluster, answer_of
from lamina.client.errors import ClientError, Unreachable
from tests.broker.process import BrokerProcess


def test_a_cluster_that_answers_is_reached(broker: BrokerProcess) -> None:
    assert answer_of(Cluster(broker.address).admin().describe_cluster()).cluster_id == broker.facts["cluster_id"]


def test_a_port_where_nobody_listens_is_named_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=rf"{address} \(Connection refused\); start one with `lamina serve`"):
            Cluster(address).admin()


def test_a_property_that_librdkafka_does_not_know_is_named_and_left_out(broker: BrokerProcess) -> None:
    warnings: list[str] = []
    Cluster(broker.address, {"no.such.thing": "1"}, warnings.append).admin()
    assert warnings == ["librdkafka has no property no.such.thing; it is ignored"]


def test_a_property_of_security_is_never_left_out(broker: BrokerProcess) -> None:
    with pytest.raises(ClientError, match=r"ssl\.no\.such\.thing"):
        Cluster(broker.address, {"ssl.no.such.thing": "1"}).admin()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("securty.protocol", "; did you mean security.protocol?"),
        ("security.protcol", "; did you mean security.protocol?"),
        ("Security.Protocol", "; did you mean security.protocol?"),
        ("sals.mechanism", "; did you mean sasl.mechanism?"),
        ("producer.tls.wanted", "."),
        ("security.wanted", "."),
    ],
)
def test_an_unknown_property_that_may_be_one_of_security_is_refused(name: str, meant: str) -> None:
    warnings: list[str] = []
    with pytest.raises(ClientError) as raised:
        Cluster("127.0.0.1:1", {name: "SASL_SSL"}, warnings.append).untried_admin()
    assert str(raised.value) == f"{name} is unknown{meant} Ignoring it could open the connection."
    assert warnings == []


@pytest.mark.parametrize(
    "name",
    [
        "exclude.internal.topics",
        "internal.leave.group.on.close",
        "schema.registry.basic.auth.user.info",
        "basic.auth.credentials.source",
    ],
)
def test_what_javas_files_hold_for_others_is_no_security_of_the_connection(name: str) -> None:
    warnings: list[str] = []
    Cluster("127.0.0.1:1", {name: "1"}, warnings.append).untried_admin()
    assert warnings == [f"librdkafka has no property {name}; it is ignored"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("ssl.truststore.location", None, "cannot be read: No such file or directory"),
        ("ssl.truststore.location", "nothing", "has no PEM in it"),
        ("ssl.ca.location", None, "cannot be read: No such file or directory"),
        ("ssl.keystore.location", None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_plain_words(
    tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    file = tmp_path / "store.pem"
    if content is not None:
        file.write_text(content)
    given = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM", name: str(file)}
    if name == "ssl.ca.location":
        del given["ssl.truststore.type"]
    with pytest.raises(ClientError, match=rf"{file}: .*{reason}") as raised:
        Cluster("127.0.0.1:1", given).untried_admin()
    assert "error:" not in str(raised.value)


def test_a_value_that_cannot_be_used_is_refused(broker: BrokerProcess) -> None:
    with pytest.raises(ClientError, match=r"socket\.timeout\.ms"):
        Cluster(broker.address, {"socket.timeout.ms": "soon"}).admin()


@pytest.mark.parametrize(
    ("protocol", "shows"), [(None, False), ("PLAINTEXT", False), ("SSL", True), ("SASL_SSL", True)]
)
def test_whether_brokers_may_tell_one_user_less_than_another(protocol: str | None, shows: bool) -> None:
    given = {} if protocol is None else {"security.protocol": protocol}
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='p';"
    sasl = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": login} if protocol == "SASL_SSL" else {}
    assert Cluster("127.0.0.1:1", given | sasl).shows_who_asks is shows


def test_no_answer_in_time_is_an_error() -> None:
    with pytest.raises(ClientError, match="no answer within 0 s"):
        answer_of(Future[None](), 0)


def test_what_is_for_the_admin_listener_alone_stays_out_of_the_connections(broker: BrokerProcess) -> None:
    cluster = Cluster(broker.address, {"security.protocol": "PLAINTEXT", "ssl.ca.location": "/ca.pem"})
    assert cluster.ask(lambda peers: peers.cluster_id()) == broker.facts["cluster_id"]
