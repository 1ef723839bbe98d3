"""What a person is told when a cluster cannot be spoken to."""

from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina
from tests.client.servers import a_server_that_says

SASL = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";
"""


@pytest.mark.parametrize(
    "address", ["", ",", "a b", "http://127.0.0.1:9092", "127.0.0.1:99999", "127.0.0.1:0", ":9092"]
)
def test_what_is_no_address_is_refused_at_once(lamina: Lamina, address: str) -> None:
    outcome = lamina("brokers", "--bootstrap-server", address)
    assert outcome.status == 2
    assert "is not of the form HOST:PORT" in outcome.err


def test_one_of_several_addresses_is_enough(lamina: Lamina, broker: BrokerProcess) -> None:
    assert lamina("brokers", "--bootstrap-server", f"127.0.0.1:1,{broker.address}").status == 0
    assert lamina("brokers", "--bootstrap-server", f"PLAINTEXT://{broker.address}").status == 0


def test_a_port_that_speaks_http_is_recognised(lamina: Lamina) -> None:
    with a_server_that_says(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") as address:
        outcome = lamina("topics", "list", "--bootstrap-server", address)
    assert outcome.status == 3
    assert outcome.err == f"lamina: what answers at {address} does not speak Kafka's protocol; check the port\n"


def test_a_name_that_nobody_knows(lamina: Lamina) -> None:
    outcome = lamina("topics", "list", "--bootstrap-server", "nowhere.invalid:9092")
    assert outcome.status == 3
    assert outcome.err.count("\n") == 1
    assert "no broker answers at nowhere.invalid:9092 (" in outcome.err


@pytest.mark.parametrize("properties", [SASL, "security.protocol=SSL\n"])
def test_security_against_a_port_without_it(
    lamina: Lamina, broker: BrokerProcess, tmp_path: Path, properties: str
) -> None:
    file = tmp_path / "client.properties"
    file.touch(0o600)
    file.write_text(properties)
    outcome = lamina("topics", "list", "--bootstrap-server", broker.address, "--command-config", file)
    assert outcome.status == 3
    assert outcome.err == (
        f"lamina: {broker.address} has neither TLS nor logins; set security.protocol=PLAINTEXT in --command-config\n"
    )


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            "securty.protocol=SASL_SSL\n",
            "securty.protocol is unknown; did you mean security.protocol? Ignoring it could open the connection.",
        ),
        (
            SASL.partition("\n")[2],
            "sasl.mechanism has no meaning with security.protocol=PLAINTEXT; "
            "set security.protocol to SASL_PLAINTEXT or SASL_SSL",
        ),
    ],
)
def test_security_that_would_be_lost_is_refused_before_anybody_is_asked(
    lamina: Lamina, broker: BrokerProcess, tmp_path: Path, properties: str, sentence: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    outcome = lamina("topics", "list", "--bootstrap-server", broker.address, "--command-config", file)
    assert outcome.status != 0
    assert outcome.out == ""
    assert outcome.err == f"lamina: {sentence}\n"


def test_a_private_key_that_is_given_for_properties_is_refused_and_not_printed(lamina: Lamina, tmp_path: Path) -> None:
    key = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"
    file = tmp_path / "admin.pem"
    file.write_text(f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    outcome = lamina("topics", "list", "--bootstrap-server", "127.0.0.1:1", "--command-config", file)
    assert outcome.status == 2
    assert "line 1: this is PEM, a key or a certificate, and no file of properties" in outcome.err
    assert key not in outcome.out + outcome.err
