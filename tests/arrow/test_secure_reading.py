"""Topics of a broker with TLS and logins, read as Arrow: by every protocol, and not by who may not."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from lamina.arrow.errors import ReadError
from lamina.arrow.prefetching import ReadFiles
from lamina.arrow.topic_reading import read
from lamina.errors import KafkaError, SaslAuthenticationFailed, SslAuthenticationFailed
from tests.arrow.secure_broker import PASSWORD, PROTOCOLS, SecureBroker, Start
from tests.tls.certificates import Authority


@pytest.fixture
def secure(own_broker: Start, tmp_path: Path) -> SecureBroker:
    return SecureBroker(own_broker, tmp_path)


def values(secure: SecureBroker, protocol: str, files: ReadFiles, **given: str) -> list[bytes]:
    properties = secure.properties(protocol) | {name.replace("_", "."): text for name, text in given.items()}
    reader = read("t", ["value"], bootstrap_servers=secure.address(protocol), properties=properties, read_files=files)
    return [value.as_py() for value in reader.read_all()["value"]]


def test_a_topic_is_the_same_by_every_protocol(secure: SecureBroker) -> None:
    producer = Producer({"bootstrap.servers": secure.address("PLAINTEXT")})
    written = [b"%d" % number * 1000 for number in range(3000)]
    for value in written:
        producer.produce("t", value)
    assert producer.flush(60) == 0
    for protocol in PROTOCOLS:
        for files in (ReadFiles.NEVER, ReadFiles.REQUIRE):
            assert values(secure, protocol, files) == written, (protocol, files)
    entry = secure.properties("SASL_SSL")["sasl.jaas.config"].replace(PASSWORD, "guess")
    with pytest.raises(SaslAuthenticationFailed, match="does not accept this login") as wrong:
        values(secure, "SASL_SSL", ReadFiles.NEVER, sasl_jaas_config=entry)
    assert "guess" not in str(wrong.value)
    strangers = Authority().pem(secure.ca.parent / "strangers.pem")
    with pytest.raises(SslAuthenticationFailed, match="not signed by a CA that is trusted here"):
        values(secure, "SASL_SSL", ReadFiles.NEVER, ssl_truststore_location=str(strangers))
    with pytest.raises(ReadError, match=r"ssl\.truststore\.location = /nowhere: cannot be read"):
        values(secure, "SASL_SSL", ReadFiles.NEVER, ssl_truststore_location="/nowhere")
    plainly = {"default.api.timeout.ms": "2000"}
    with pytest.raises(KafkaError, match=r"set security\.protocol"):
        read("t", bootstrap_servers=secure.address("SSL"), properties=plainly)


def test_a_misspelled_property_opens_no_connection() -> None:
    with pytest.raises(
        ReadError, match=r"^securty\.protocol is unknown; did you mean security\.protocol\? Ignoring it"
    ):
        read("t", bootstrap_servers="127.0.0.1:1", properties={"securty.protocol": "SASL_SSL"})
