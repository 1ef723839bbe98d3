"""Our own connections to a real Kafka with TLS and SASL: who is let in, and what is told to who is not."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import Iterator, Mapping

import pytest

from lamina.client.cluster import Cluster, answer_of
from lamina.errors import (
    IllegalSaslState,
    KafkaError,
    NetworkError,
    SaslAuthenticationFailed,
    SslAuthenticationFailed,
    TopicAuthorizationFailed,
    UnsupportedSaslMechanism,
)
from lamina.peer.addresses import parse_bootstrap
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import open_connection
from lamina.peer.limits import Limits
from lamina.peer.routes import metadata_call
from lamina.peer.security import connectors
from lamina.peer.security_properties import parse_security
from tests.peer.clients import MIB, batch_of, client, create, values_in
from tests.peer.loops import SkippingLoop, run
from tests.peers.kafka import CLUSTER_ID
from tests.peers.secure_kafka import SESSION_MS, SecureKafka, unsecured_token
from tests.tls.certificates import LONG_AGO, Authority

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

LIMITS = Limits(api_timeout_ms=15_000)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    node = SecureKafka(tmp_path_factory.mktemp("kafka"))
    with node:
        node.make_users()
        yield node


def secure_client(given: Mapping[str, str]) -> ClusterClient:
    connector = connectors(parse_security(given), secrets.token_urlsafe)("test")
    return ClusterClient(parse_bootstrap(given["bootstrap.servers"]), connector, random.random, LIMITS)


def told(given: Mapping[str, str]) -> dict[int, object]:
    """What a client is told about the brokers."""

    async def scenario(_: SkippingLoop) -> dict[int, object]:
        async with secure_client(given) as cluster:
            return dict(await cluster.brokers())

    return run(scenario)


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SSL", ""),
        ("MUTUAL", ""),
        *(("SASL_PLAINTEXT", one) for one in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")),
        ("SASL_SSL", "SCRAM-SHA-512"),
    ],
)
def test_who_is_right_is_let_in(kafka: SecureKafka, listener: str, mechanism: str) -> None:
    assert list(told(kafka.properties(listener, mechanism))) == [1]


def test_batches_over_tls_come_back_as_they_were(kafka: SecureKafka) -> None:
    """Many frames, larger than a TLS record."""
    batch = batch_of(*(b"%d" % number * 20_000 for number in range(10)))

    async def scenario(_: SkippingLoop) -> None:
        async with secure_client(kafka.properties("SASL_SSL", user="admin")) as cluster:
            await create(cluster, "over-tls")
            for _batch in range(20):
                await cluster.produce("over-tls", 0, batch)
            offset = 0
            while offset < 200:
                fetched = await cluster.fetch("over-tls", 0, offset, max_bytes=8 * MIB)
                values = values_in(fetched.records)
                assert values[:10] == [b"%d" % number * 20_000 for number in range(10)]
                offset += len(values)
            assert offset == 200

    run(scenario)


def test_sessions_are_renewed_on_the_same_connection(kafka: SecureKafka) -> None:
    """S36, S74: Kafka would close the connection at the first request after the session's end."""

    given = kafka.properties("SASL_PLAINTEXT", "PLAIN")
    (address,) = parse_bootstrap(given["bootstrap.servers"])

    async def scenario(loop: SkippingLoop) -> None:
        connection = await open_connection(connectors(parse_security(given), lambda: "")("test"), address, LIMITS)
        for _ in range(3):
            # Kafka takes no login within a second of the last one (S37), and it has a clock of its own.
            await asyncio.sleep(1.1)
            loop.skip(SESSION_MS / 1000)
            assert (await connection.request(metadata_call([]))).cluster_id == CLUSTER_ID
        assert connection.is_usable
        connection.close()

    run(scenario)


def check_refusal(given: Mapping[str, str], kind: type[KafkaError], words: str) -> None:
    with pytest.raises(KafkaError) as raised:
        told(given)
    sentence = str(raised.value)
    assert isinstance(raised.value, kind), repr(raised.value)
    assert "127.0.0.1:" in sentence
    assert words in sentence
    assert "\n" not in sentence
    assert not re.search("opens it|alice; secret|wrong one", sentence)


def test_an_authority_that_is_not_trusted(kafka: SecureKafka) -> None:
    strangers = Authority().pem(kafka.root / "strangers.pem")
    given = {**kafka.properties("SSL"), "ssl.truststore.location": str(strangers)}
    check_refusal(given, SslAuthenticationFailed, "not signed by a CA that is trusted here")


def test_an_expired_certificate(kafka: SecureKafka) -> None:
    check_refusal(kafka.properties("OLD"), SslAuthenticationFailed, "has expired")


def test_a_client_whose_certificate_is_not_taken(kafka: SecureKafka) -> None:
    """S16, S17"""
    none = {**kafka.properties("SSL"), "bootstrap.servers": kafka.address("MUTUAL")}
    check_refusal(none, KafkaError, "ssl.keystore")
    for issuer, until in ((Authority(), None), (kafka.authority, LONG_AGO)):
        identity = issuer.issue("alice.example", name="alice", until=until).pkcs12(kafka.root / "other.p12", "opens it")
        given = {**kafka.properties("MUTUAL"), "ssl.keystore.location": str(identity)}
        check_refusal(given, SslAuthenticationFailed, "certificate")


def test_a_port_of_the_other_kind(kafka: SecureKafka) -> None:
    tls_to_plain = {**kafka.properties("SSL"), "bootstrap.servers": kafka.address("PLAINTEXT")}
    check_refusal(tls_to_plain, NetworkError, "if its listener is one without TLS, change security.protocol")
    check_refusal({"bootstrap.servers": kafka.address("SSL")}, KafkaError, "set security.protocol")
    check_refusal(
        {"bootstrap.servers": kafka.address("SASL_PLAINTEXT")}, NetworkError, "a login, set security.protocol"
    )
    login_to_plain = {**kafka.properties("SASL_PLAINTEXT"), "bootstrap.servers": kafka.address("PLAINTEXT")}
    check_refusal(login_to_plain, IllegalSaslState, "has no logins; set security.protocol")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password(kafka: SecureKafka, mechanism: str) -> None:
    given = kafka.properties("SASL_PLAINTEXT", mechanism)
    given["sasl.jaas.config"] = given["sasl.jaas.config"].replace("alice; secret", "wrong one")
    check_refusal(given, SaslAuthenticationFailed, "does not accept this login: Authentication failed")


def test_a_token_that_has_expired(kafka: SecureKafka) -> None:
    given = kafka.properties("SASL_PLAINTEXT", "OAUTHBEARER")
    token = kafka.root / "alice.token"
    token.write_text(unsecured_token("alice", seconds=-3600))
    check_refusal(given, SaslAuthenticationFailed, "does not accept this login: ")


def test_no_mechanism_in_common(kafka: SecureKafka) -> None:
    given = kafka.properties("SASL_SSL", "PLAIN")
    check_refusal(given, UnsupportedSaslMechanism, "has no logins by PLAIN, only by SCRAM-SHA-512")


def test_a_host_name_that_is_not_in_the_certificate(kafka: SecureKafka) -> None:
    given = kafka.properties("SSL")
    given["bootstrap.servers"] = given["bootstrap.servers"].replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(KafkaError, match=r"127\.0\.0\.2"):
        told(given)


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SSL", ""),
        ("MUTUAL", ""),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_PLAINTEXT", "OAUTHBEARER"),
        ("SASL_SSL", "SCRAM-SHA-512"),
    ],
)
def test_one_file_of_properties_is_for_librdkafka_and_for_our_own_requests(
    kafka: SecureKafka, listener: str, mechanism: str
) -> None:
    """As of every command that is given --command-config."""
    given = kafka.properties(listener, mechanism or "SCRAM-SHA-512", user="admin")
    cluster = Cluster(given.pop("bootstrap.servers"), given)
    assert answer_of(cluster.admin().describe_cluster()).cluster_id == CLUSTER_ID
    assert cluster.ask(lambda peers: peers.cluster_id()) == CLUSTER_ID


def test_no_permission(kafka: SecureKafka) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(kafka.address("PLAINTEXT")) as admin:
            await create(admin, "private")
        async with secure_client(kafka.properties("SASL_SSL")) as alice:
            with pytest.raises(TopicAuthorizationFailed):
                await alice.produce("private", 0, batch_of(b"mine"))

    run(scenario)
