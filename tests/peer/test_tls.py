"""Connections over TLS: who is trusted, by which name, and what is told where the two sides do not agree."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from lamina.errors import KafkaError, MalformedResponse, NetworkError, SslAuthenticationFailed
from lamina.peer.addresses import Address
from lamina.peer.connector import Connector, PlainConnector, open_connection
from lamina.peer.limits import Limits
from lamina.peer.security import connectors
from lamina.peer.security_properties import SecurityPropertyError, parse_security
from tests.client.servers import a_server_that_says
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import FIND_COORDINATOR, ScriptedBroker
from tests.peer.test_connection import find, found
from tests.tls.certificates import LONG_AGO, PASSWORD, Authority, Identity

CA = Authority()
ALICE = CA.issue("alice.example", name="alice")


def properties(authority: Authority = CA, **given: str) -> dict[str, str]:
    """Of a client that trusts an authority; dots of names are underscores here."""
    trusting = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificates,
    }
    return trusting | {name.replace("_", "."): value for name, value in given.items()}


def listening(identity: Identity, client_auth: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    identity.cert.configure_cert(context)
    CA.ca.configure_trust(context)
    context.verify_mode = client_auth
    return context


BROKER = CA.issue("127.0.0.1", "localhost")


def connector_of(given: Mapping[str, str]) -> Connector:
    return connectors(parse_security(given), lambda: "nonce")("test")


def ask(context: ssl.SSLContext | None, given: Mapping[str, str], host: str = "127.0.0.1") -> str:
    """What a broker with this context answers a client with these properties."""

    async def scenario(_: SkippingLoop) -> str:
        connector = connector_of(given)
        async with ScriptedBroker({FIND_COORDINATOR: found}, context) as broker:
            connection = await open_connection(connector, Address(host, broker.address.port), Limits())
            try:
                return str((await connection.request(find("mine"))).coordinators[0].key)
            finally:
                connection.close()

    return run(scenario)


def test_a_broker_whose_certificate_is_signed_by_the_trusted_authority() -> None:
    assert ask(listening(BROKER), properties()) == "mine"
    assert ask(listening(BROKER), properties(), "localhost") == "mine"


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_a_client_that_shows_its_certificate_in_each_way_to_name_one(tmp_path: Path, protocol: str) -> None:
    """S70, S71"""
    authority, key, chain = CA.pem(tmp_path / "ca.pem"), tmp_path / "key.pem", tmp_path / "chain.pem"
    key.write_text(ALICE.key("key secret"))
    chain.write_text(ALICE.chain)
    both = str(ALICE.pem(tmp_path / "alice.pem"))
    stores = {
        "ssl.truststore.location": str(CA.pkcs12(tmp_path / "ca.p12")),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(ALICE.pkcs12(tmp_path / "alice.p12")),
        "ssl.keystore.password": PASSWORD,
    }
    of_librdkafka = {"ssl.ca.location": str(authority), "ssl.certificate.location": both, "ssl.key.location": both}
    for given in (
        stores,
        {**stores, "ssl.keystore.type": "PKCS12", "ssl.truststore.type": "PKCS12"},
        {**properties(), "ssl.keystore.type": "PEM", "ssl.keystore.location": both},
        {
            **properties(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": ALICE.key(),
            "ssl.keystore.certificate.chain": ALICE.chain,
        },
        of_librdkafka,
        {
            **of_librdkafka,
            "ssl.certificate.location": str(chain),
            "ssl.key.location": str(key),
            "ssl.key.password": "key secret",
        },
        {"ssl.ca.pem": CA.certificates, "ssl.certificate.pem": ALICE.chain, "ssl.key.pem": ALICE.key()},
    ):
        asked = {"security.protocol": "SSL", **given, "ssl.enabled.protocols": protocol}
        assert ask(listening(BROKER, ssl.CERT_REQUIRED), asked) == "mine"


def test_an_authority_that_is_not_trusted() -> None:
    with pytest.raises(SslAuthenticationFailed, match=r"is not signed by a CA that is trusted here .*truststore"):
        ask(listening(BROKER), properties(Authority()))


def test_the_authorities_of_this_machine_are_trusted_where_nothing_is_said() -> None:
    with pytest.raises(SslAuthenticationFailed, match=r"is not signed by a CA that is trusted here"):
        ask(listening(BROKER), {"security.protocol": "SSL"})


def test_a_certificate_for_another_host() -> None:
    """S87; only an empty ssl.endpoint.identification.algorithm leaves the name alone, and never the signature."""
    context = listening(CA.issue("elsewhere.example"))
    with pytest.raises(SslAuthenticationFailed, match=r"is for another host.*127\.0\.0\.1"):
        ask(context, properties())
    assert ask(context, properties(ssl_endpoint_identification_algorithm="")) == "mine"
    with pytest.raises(SslAuthenticationFailed, match=r"is not signed"):
        ask(context, properties(Authority(), ssl_endpoint_identification_algorithm=""))


def test_an_expired_certificate() -> None:
    with pytest.raises(SslAuthenticationFailed, match=r"has expired"):
        ask(listening(CA.issue("127.0.0.1", until=LONG_AGO)), properties())


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_a_certificate_is_wanted_and_the_client_has_none(protocol: str) -> None:
    """S17: in TLS 1.3 the refusal comes after the handshake."""
    with pytest.raises(KafkaError, match=r"ssl\.keystore|TLS handshake"):
        ask(listening(BROKER, ssl.CERT_REQUIRED), properties(ssl_enabled_protocols=protocol))


@pytest.mark.parametrize(
    ("alert", "reason"),
    [
        (70, r"no TLS version and cipher in common \(protocol version\)"),
        (40, r"no TLS version and cipher in common"),
        (42, r"refuses this client's certificate"),
        (45, r"certificate: it has expired"),
        (48, r"refuses this client's certificate, or the lack of one"),
        (116, r"wants a certificate"),
        (80, r"no TLS connection to .* \(internal error\)"),
    ],
)
def test_a_refusal_by_an_alert(alert: int, reason: str) -> None:
    """S17"""
    said = b"\x15\x03\x03\x00\x02\x02" + bytes([alert])
    with a_server_that_says(said) as address, pytest.raises(SslAuthenticationFailed, match=reason):
        connect_to(address)


def test_a_listener_without_tls() -> None:
    """It takes the handshake for a request that is too large, and hangs up (S24)."""
    with a_server_that_says(b"") as address, pytest.raises(NetworkError, match=r"without TLS.*security\.protocol"):
        connect_to(address)
    no_tls = pytest.raises(SslAuthenticationFailed, match=r"does not speak TLS")
    with a_server_that_says(b"HTTP/1.1 400\r\n\r\n") as address, no_tls:
        connect_to(address)


def connect_to(address: str) -> None:
    host, _, port = address.rpartition(":")

    async def scenario(_: SkippingLoop) -> None:
        await open_connection(connector_of(properties()), Address(host, int(port)), Limits())

    run(scenario)


def test_a_plain_client_of_a_listener_with_tls() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({}, listening(BROKER)) as broker:
            await open_connection(PlainConnector("test"), broker.address, Limits())

    with pytest.raises((MalformedResponse, NetworkError), match=r"set security\.protocol"):
        run(scenario)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ssl.truststore.location": "/nowhere"}, "ssl.truststore.location = /nowhere: cannot be read"),
        ({"ssl.ca.pem": "nothing"}, "has no certificates"),
        ({"ssl.certificate.location": "/a", "ssl.key.location": "/b"}, "ssl.key.location = /b: cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told_before_anybody_connects(given: dict[str, str], reason: str) -> None:
    with pytest.raises(SecurityPropertyError, match=reason):
        connector_of({"security.protocol": "SSL", **given})
