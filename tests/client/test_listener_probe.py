"""A command that speaks to a listener in the wrong way is told the right one; one that is right is not."""

from pathlib import Path

import pytest

from lamina.client.cluster import Cluster
from lamina.client.errors import Unreachable
from lamina.client.listener_probe import why_not_as_spoken
from tests.arrow.secure_broker import PASSWORD, PROTOCOLS, SecureBroker, Start
from tests.client.servers import a_server_that_says
from tests.tls.certificates import LONG_AGO, Authority

WHAT = {
    "PLAINTEXT": "has neither TLS nor logins",
    "SSL": "speaks TLS and wants a certificate",
    "SASL_PLAINTEXT": "wants a login by PLAIN",
    "SASL_SSL": "speaks TLS and wants a login by PLAIN",
}


@pytest.fixture
def secure(own_broker: Start, tmp_path: Path) -> SecureBroker:
    return SecureBroker(own_broker, tmp_path)


def test_every_way_to_speak_to_every_listener(secure: SecureBroker) -> None:
    for listener in PROTOCOLS:
        address = secure.address(listener)
        for spoken in PROTOCOLS:
            told = why_not_as_spoken(address, secure.properties(spoken))
            if spoken == listener:
                assert told is None
            elif (listener, spoken) == ("SSL", "SASL_SSL"):
                # Whoever has TLS is told the broker's own reason: there is no certificate.
                assert told is not None
                assert address in told
                assert "ssl.keystore" in told
            else:
                assert told is not None
                assert told.startswith(f"{address} {WHAT[listener]}; set security.protocol={listener}"), (spoken, told)
                assert told.endswith(" in --command-config")
    check_what_is_wrong_with_tls(secure)
    check_what_a_command_says(secure)


def check_what_is_wrong_with_tls(secure: SecureBroker) -> None:
    directory, address = secure.ca.parent, secure.address("SASL_SSL")
    given = secure.properties("SASL_SSL")
    strangers = {**given, "ssl.truststore.location": str(Authority().pem(directory / "strangers.pem"))}
    told = why_not_as_spoken(address, strangers)
    assert told is not None
    assert told.startswith(f"the certificate of {address} is not signed by a CA that is trusted here")
    other_name = why_not_as_spoken(address.replace("127.0.0.1", "localhost"), given)
    assert other_name is not None
    assert "is for another host; connect by a name that it has" in other_name
    scram = {name: text.replace("plain.Plain", "scram.Scram") for name, text in given.items()}
    told = why_not_as_spoken(address, {**scram, "sasl.mechanism": "SCRAM-SHA-512"})
    assert told == f"{address} speaks TLS and wants a login by PLAIN; set sasl.mechanism in --command-config"
    old = secure.authority.issue("alice.example", until=LONG_AGO).pem(directory / "old.pem")
    told = why_not_as_spoken(secure.address("SSL"), {**secure.properties("SSL"), "ssl.keystore.location": str(old)})
    assert told is not None
    assert told.startswith(f"{secure.address('SSL')} refuses this client's certificate")
    none = {name: text for name, text in secure.properties("SSL").items() if "keystore" not in name}
    told = why_not_as_spoken(secure.address("SSL"), none)
    assert told is not None
    assert "set ssl.keystore.location" in told


def check_what_a_command_says(secure: SecureBroker) -> None:
    address = secure.address("SASL_SSL")
    with pytest.raises(Unreachable) as caught:
        Cluster(address).admin()
    assert str(caught.value) == (
        f"{address} speaks TLS and wants a login by PLAIN; set security.protocol=SASL_SSL, ssl.truststore.location, "
        "sasl.mechanism and sasl.jaas.config in --command-config"
    )
    given = secure.properties("SASL_SSL")
    wrong = given["sasl.jaas.config"].replace(PASSWORD, "guess")
    with pytest.raises(Unreachable, match="does not accept this login"):
        Cluster(address, {**given, "sasl.jaas.config": wrong}).admin()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_does_not_speak_kafkas_protocol_is_not_explained(answer: bytes) -> None:
    with a_server_that_says(answer) as address:
        assert why_not_as_spoken(address, {}) is None


def test_where_nobody_listens_and_what_cannot_be_read_is_not_explained() -> None:
    assert why_not_as_spoken("127.0.0.1:1", {}) is None
    assert why_not_as_spoken("not an address", {}) is None
    assert why_not_as_spoken("127.0.0.1:1", {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}) is None
