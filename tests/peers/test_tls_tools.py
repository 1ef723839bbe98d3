"""Kafka's own tools over TLS, with stores that Java's keytool has made (S5, S6, S13, S18, S71)."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from lamina.settings.ssl_stores import KeyStoreSource
from lamina.tls.stores import StoreError, read_key_store
from tests.broker.tls import TlsBroker
from tests.peers.kafka import KafkaFailedError, run_tool
from tests.tls.certificates import Authority

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TOPICS, CONFIGS = "org.apache.kafka.tools.TopicCommand", "kafka.admin.ConfigCommand"
PASSWORD = "of the stores"
NAME = r"CN=alice, OU=Team A, O=Acme\, Ltd"
RULE = r"RULE:^CN=alice,OU=Team A,O=Acme\\, Ltd$/alice/"
"""Only Java's own spelling of the name matches."""


class Stores:
    """A keystore and, of its certificate, a truststore."""

    def __init__(self, directory: Path, name: str, subject: str, kind: str = "PKCS12") -> None:
        self.key_store, self.trust_store = directory / f"{name}.p12", directory / f"{name}-trusted.p12"
        self.certificate = directory / f"{name}.pem"
        self._keytool(
            "-genkeypair -keyalg RSA -validity 90 -alias own -ext san=ip:127.0.0.1 -dname",
            subject,
            self.key_store,
            kind,
        )
        self._keytool("-exportcert -rfc -alias own -file", str(self.certificate), self.key_store, kind)
        self._keytool("-importcert -noprompt -alias ca -file", str(self.certificate), self.trust_store, "PKCS12")

    @staticmethod
    def _keytool(words: str, argument: str, store: Path, kind: str) -> None:
        command = ["keytool", *words.split(), argument, "-keystore", str(store), "-storetype", kind]
        subprocess.run([*command, "-storepass", PASSWORD, "-keypass", PASSWORD], check=True, capture_output=True)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def own(directory: Path) -> Stores:
    return Stores(directory, "broker", "CN=broker")


@pytest.fixture(scope="module")
def alice(directory: Path) -> Stores:
    return Stores(directory, "alice", NAME)


@pytest.fixture(scope="module")
def broker(directory: Path, own: Stores, alice: Stores) -> Iterator[TlsBroker]:
    authority = Authority()
    running = TlsBroker(
        directory / "broker",
        authority,
        authority.issue("127.0.0.1"),
        **{
            "ssl.keystore.type": "JKS",  # As in a file that says nothing of it.
            "ssl.keystore.location": str(own.key_store),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "JKS",
            "ssl.truststore.location": str(alice.trust_store),
            "ssl.truststore.password": PASSWORD,
            "listener.name.mutual.ssl.principal.mapping.rules": RULE,
            "ssl.allow.dn.changes": "true",
        },
    ).start()
    yield running
    running.stop()


def properties(directory: Path, trusted: Path, shown: Path | None = None) -> str:
    lines = ["security.protocol=SSL", f"ssl.truststore.location={trusted}", f"ssl.truststore.password={PASSWORD}"]
    if shown is not None:
        lines += [f"ssl.keystore.location={shown}", f"ssl.keystore.password={PASSWORD}"]
    path = directory / "client.properties"
    path.write_text("\n".join(lines))
    return str(path)


def topics(broker: TlsBroker, listener: str, config: str, *words: str) -> str:
    return run_tool(TOPICS, "--bootstrap-server", broker.address_of(listener), "--command-config", config, *words)


def test_a_tool_works_over_tls(broker: TlsBroker, own: Stores, tmp_path: Path) -> None:
    config = properties(tmp_path, own.trust_store)
    topics(broker, "SSL", config, "--create", "--topic", "over-tls")
    assert "over-tls" in topics(broker, "SSL", config, "--list")


def test_a_certificate_with_a_name_that_needs_care_is_known(
    broker: TlsBroker, own: Stores, alice: Stores, tmp_path: Path
) -> None:
    config = properties(tmp_path, own.trust_store, alice.key_store)
    assert "__" not in topics(broker, "MUTUAL", config, "--list", "--exclude-internal")


def test_a_tool_that_trusts_another_says_so(broker: TlsBroker, alice: Stores, tmp_path: Path) -> None:
    with pytest.raises(KafkaFailedError, match="SSL handshake failed"):
        topics(broker, "SSL", properties(tmp_path, alice.trust_store), "--list")


def test_kafkas_tool_has_a_certificate_changed(broker: TlsBroker, own: Stores, directory: Path, tmp_path: Path) -> None:
    def shown() -> x509.Certificate:
        return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", broker.port("SSL"))).encode())

    new = Stores(directory, "new", "CN=broker")
    location = f"listener.name.ssl.ssl.keystore.location={new.key_store}"
    password = f"listener.name.ssl.ssl.keystore.password={PASSWORD}"
    entity = ("--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config", f"{location},{password}")
    config = properties(tmp_path, own.trust_store)
    told = run_tool(CONFIGS, "--bootstrap-server", broker.address_of("SSL"), "--command-config", config, *entity)
    assert "Completed updating config for broker 1" in told
    assert shown() == x509.load_pem_x509_certificate(new.certificate.read_bytes())


def test_javas_own_form_can_be_converted_by_the_line_that_refuses_it(directory: Path) -> None:
    """S14."""
    old = Stores(directory, "old", "CN=old", kind="JKS")
    with pytest.raises(StoreError) as caught:
        read_key_store(KeyStoreSource("JKS", str(old.key_store), PASSWORD))
    line = str(caught.value).partition("Convert it: ")[2]
    passwords = ["-srcstorepass", PASSWORD, "-deststorepass", PASSWORD, "-noprompt"]
    subprocess.run([*line.split(), *passwords], check=True, capture_output=True)
    store = read_key_store(KeyStoreSource("JKS", f"{old.key_store}.p12", PASSWORD))
    assert store.certificate == x509.load_pem_x509_certificate(old.certificate.read_bytes())
