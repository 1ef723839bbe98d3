"""Java's clients, franz-go and kcat over TLS, mutual TLS, and TLS with logins: each works on the right terms, and says
what is wrong on others (S16, S17, S24, S70, S71, S73)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from lamina.cluster.ports import free_port
from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.tls import ExpiredBroker
from tests.peers.kafka import KafkaFailedError, run_tool
from tests.peers.lamina import Lamina
from tests.peers.secure_kafka import unsecured_token
from tests.tls.certificates import LONG_AGO, Authority, Identity

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SECURITY = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "alice secret"
CALL_SECONDS = 60
WAIT_SECONDS = 30.0
AUTHORITY, STRANGER = Authority(), Authority()
ALICE = AUTHORITY.issue("alice.example", name="alice")
OURS = "ok-"
"""What names of topics and groups begin with that Alice may use."""
PRIVATE = "private"


@dataclass(frozen=True)
class Terms:
    """What a client is given: where to go, whom to trust, what to show, how to log in."""

    address: str
    authority: Path
    identity: Path | None = None
    """Key and certificate in one file."""
    mechanism: str = ""
    password: str = PASSWORD

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.mechanism else "SSL"

    @property
    def token(self) -> str:
        """Whoever has a wrong password has one that has expired."""
        return unsecured_token("alice", 3600 if self.password == PASSWORD else -3600)


class SecureLamina(Lamina):
    """Listeners PLAINTEXT, whose users may do everything, and SSL, MUTUAL and SASL_SSL."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.ports = {name: free_port() for name in ("PLAINTEXT", "SSL", "MUTUAL", "SASL_SSL")}
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(AUTHORITY.issue("127.0.0.1", name="broker").pem(root / "broker.pem")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(AUTHORITY.pem(root / "ca.pem")),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'{SECURITY}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
            ),
            "lamina.sasl.oauthbearer.unsecured.tokens": "true",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": "0",
            "lamina.spark.master": "none",
        }
        super().__init__(root, settings)
        at = self._command.index("--listen")
        del self._command[at : at + 2]
        self._port = self.ports["PLAINTEXT"]

    def terms(
        self, listener: str, mechanism: str = "", identity: Identity | None = None, authority: Authority = AUTHORITY
    ) -> Terms:
        trusted = authority.pem(self.root / f"trusted-{id(authority)}.pem")
        shown = None if identity is None else identity.pem(self.root / f"shown-{id(identity)}.pem")
        return Terms(f"127.0.0.1:{self.ports[listener]}", trusted, shown, mechanism)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureLamina]:
    broker = SecureLamina(tmp_path_factory.mktemp("lamina"))
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(PRIVATE, 1)])[PRIVATE].result(WAIT_SECONDS)
        for made in admin.create_acls([_all_of(ResourceType.TOPIC), _all_of(ResourceType.GROUP)]).values():
            made.result(WAIT_SECONDS)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            # One by one: a request may name a user once.
            where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "users", "--entity-name", "alice")
            run_tool(
                "kafka.admin.ConfigCommand", *where, "--alter", "--add-config", f"{mechanism}=[password={PASSWORD}]"
            )
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()
    assert PASSWORD not in broker.logged()


def _all_of(kind: ResourceType) -> AclBinding:
    return AclBinding(
        kind, OURS, ResourcePatternType.PREFIXED, "User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW
    )


class Client(Protocol):
    def echo(self, terms: Terms, topic: str) -> None:
        """Write to the topic, and read that back."""

    def complaint(self, terms: Terms, topic: str) -> str:
        """What it says when that fails."""


class Java:
    """Kafka's tools are made of Java's clients."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "client.properties"

    def _properties(self, terms: Terms) -> str:
        given = {
            "security.protocol": terms.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(terms.authority),
            "max.block.ms": "10000",
        }
        if terms.identity is not None:
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(terms.identity)}
        if terms.mechanism:
            given |= {"sasl.mechanism": terms.mechanism, "sasl.jaas.config": _login(terms)}
        self._file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        return str(self._file)

    def _produce(self, terms: Terms, topic: str) -> str:
        return run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", "10", "--record-size", "100000", "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={terms.address}"),
            *("--producer.config", self._properties(terms)),
        )

    def echo(self, terms: Terms, topic: str) -> None:
        assert "10 records sent" in self._produce(terms, topic)
        where = ("--bootstrap-server", terms.address, "--topic", topic, "--group", topic)
        config = ("--consumer.config", str(self._file), "--from-beginning", "--max-messages", "10")
        printed = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *config)
        assert "Processed a total of 10 messages" in printed

    def complaint(self, terms: Terms, topic: str) -> str:
        try:
            printed = self._produce(terms, topic)
        except KafkaFailedError as error:
            return str(error)
        # It goes on after each record that it could not send.
        assert "0 records sent" in printed or "Exception" in printed, printed
        return printed


def _login(terms: Terms) -> str:
    if terms.mechanism == "OAUTHBEARER":
        claim = "sub" if terms.password == PASSWORD else "other"
        options = f'unsecuredLoginStringClaim_{claim}="alice" unsecuredLoginPrincipalClaimName="{claim}"'
        return f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required {options};"
    module = "plain.PlainLoginModule" if terms.mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{SECURITY}.{module} required username="alice" password="{terms.password}";'


class FranzGo:
    def __init__(self, program: Path) -> None:
        self._program = program

    def _run(self, terms: Terms, topic: str) -> subprocess.CompletedProcess[str]:
        own = "" if terms.identity is None else str(terms.identity)
        given = {
            "topic": topic,
            "ca": str(terms.authority),
            "certificate": own,
            "key": own,
            "mechanism": terms.mechanism,
            "user": "alice",
            "secret": terms.token if terms.mechanism == "OAUTHBEARER" else terms.password,
        }
        return subprocess.run(
            [self._program, terms.address, "tls"],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
        )

    def echo(self, terms: Terms, topic: str) -> None:
        done = self._run(terms, topic)
        assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr

    def complaint(self, terms: Terms, topic: str) -> str:
        done = self._run(terms, topic)
        assert done.returncode == 1, done.stdout
        return done.stderr


class Kcat:
    def run(self, terms: Terms, *arguments: str, sent: str = "") -> subprocess.CompletedProcess[str]:
        given = {
            "security.protocol": terms.protocol,
            "ssl.ca.location": str(terms.authority),
            "allow.auto.create.topics": "true",
        }
        if terms.identity is not None:
            given |= {"ssl.certificate.location": str(terms.identity), "ssl.key.location": str(terms.identity)}
        if terms.mechanism:
            given |= {"sasl.mechanism": terms.mechanism, "sasl.username": "alice", "sasl.password": terms.password}
        if terms.mechanism == "OAUTHBEARER":
            life = "" if terms.password == PASSWORD else " lifeSeconds=1 principalClaimName=other"
            given |= {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal=alice{life}",
            }
        options = [part for name, value in given.items() for part in ("-X", f"{name}={value}")]
        command = ["kcat", "-b", terms.address, *options, *arguments]
        return subprocess.run(command, input=sent, capture_output=True, text=True, timeout=CALL_SECONDS)

    def echo(self, terms: Terms, topic: str) -> None:
        lines = "".join(f"{number} {'x' * 10_000}\n" for number in range(10))
        wrote = self.run(terms, "-P", "-t", topic, "-p", "0", sent=lines)
        assert wrote.returncode == 0, wrote.stderr
        assert self.run(terms, "-C", "-t", topic, "-p", "0", "-e", "-q").stdout == lines

    def complaint(self, terms: Terms, topic: str) -> str:
        sending = ("-P", "-t", topic, "-p", "0", "-X", "message.timeout.ms=3000")
        refused = self.run(terms, *(sending if topic == PRIVATE else ("-L", "-m", "2")), sent="x\n")
        assert refused.returncode != 0, refused.stdout
        return refused.stderr


@pytest.fixture(params=["java", "franz-go", "kcat"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    if request.param == "java":
        return Java(tmp_path)
    if request.param == "franz-go":
        return FranzGo(request.getfixturevalue("franz_go"))
    return Kcat()


def cannot_log_in(client: Client, mechanism: str) -> bool:
    """librdkafka before 2.6.1 sends another nonce than it was given (S41), and Debian's kcat has such a one."""
    if not isinstance(client, Kcat) or not mechanism.startswith("SCRAM"):
        return False
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", client.run(Terms("x", Path("x")), "-V").stdout)
    assert found is not None
    return tuple(map(int, found.groups())) < (2, 6, 1)


@pytest.mark.parametrize("listener", ["SSL", "MUTUAL"])
def test_a_client_on_the_right_terms_reads_what_it_wrote(client: Client, listener: str, broker: SecureLamina) -> None:
    terms = broker.terms(listener, identity=ALICE if listener == "MUTUAL" else None)
    client.echo(terms, f"{OURS}{type(client).__name__}-{listener}")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in_over_tls(client: Client, mechanism: str, broker: SecureLamina) -> None:
    terms, topic = broker.terms("SASL_SSL", mechanism), f"{OURS}{type(client).__name__}-{mechanism}"
    if cannot_log_in(client, mechanism):
        assert "librdkafka before 2.6.1" in client.complaint(terms, topic)
        return
    client.echo(terms, topic)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_with_a_wrong_password_is_told_over_tls(client: Client, mechanism: str, broker: SecureLamina) -> None:
    told = client.complaint(replace(broker.terms("SASL_SSL", mechanism), password="wrong"), f"{OURS}wrong")
    if mechanism == "OAUTHBEARER":
        assert re.search("invalid_token|oauth response", told), told
    elif not cannot_log_in(client, mechanism):
        assert "Authentication failed: " in told


REFUSED = {
    # Sides that cannot agree → what each of the three says.
    "an authority that did not sign the broker": ("SSL", None, STRANGER, "127.0.0.1", "verif|unknown authority|PKIX"),
    "a host that the certificate does not name": (
        "SSL",
        None,
        AUTHORITY,
        "localhost",
        "verify failed|not localhost|to match localhost|matching localhost",
    ),
    "no certificate": (
        "MUTUAL",
        None,
        AUTHORITY,
        "127.0.0.1",
        "alert number|certificate required|certificate_required",
    ),
    "a certificate of a stranger": (
        "MUTUAL",
        STRANGER.issue("alice.example", name="alice"),
        AUTHORITY,
        "127.0.0.1",
        "alert number|unknown certificate authority|unknown_ca|certificate required|certificate_required",
    ),
    "a certificate that has expired": (
        "MUTUAL",
        AUTHORITY.issue("alice.example", name="alice", until=LONG_AGO),
        AUTHORITY,
        "127.0.0.1",
        "alert number|expired",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_client_on_wrong_terms_says_so(client: Client, case: str, broker: SecureLamina) -> None:
    listener, identity, authority, host, said = REFUSED[case]
    terms = broker.terms(listener, identity=identity, authority=authority)
    told = client.complaint(replace(terms, address=terms.address.replace("127.0.0.1", host)), f"{OURS}wrong")
    assert re.search(said, told), told


@pytest.mark.parametrize(("listener", "mechanism"), [("MUTUAL", ""), ("SASL_SSL", "PLAIN")])
def test_a_client_that_may_not_is_told(client: Client, listener: str, mechanism: str, broker: SecureLamina) -> None:
    terms = broker.terms(listener, mechanism, identity=None if mechanism else ALICE)
    told = client.complaint(terms, PRIVATE)
    assert re.search("Topic authorization failed|Not authorized to access topic|TOPIC_AUTHORIZATION_FAILED", told), told


@pytest.fixture(scope="module")
def expired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExpiredBroker]:
    running = ExpiredBroker(tmp_path_factory.mktemp("expired"), AUTHORITY).start()
    yield running
    running.stop()


def test_a_client_does_not_take_a_brokers_certificate_that_has_expired(client: Client, expired: ExpiredBroker) -> None:
    told = client.complaint(Terms(expired.address_of("SSL"), expired.trust_store), f"{OURS}wrong")
    assert re.search("verify failed|expired|validity check failed|NotAfter", told), told
