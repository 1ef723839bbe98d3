"""The three clients that Python people use, by every mechanism: they work with the right password, and with a wrong one
each says what it has to say (S70, S72)."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jwt
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokenProvider

from lamina.broker.counters import LoginOutcome
from tests.broker.login.logging_in import MECHANISM_NAMES, OWN_TOKENS, PASSWORDS, PREFIX, SETTINGS, SaslBroker
from tests.broker.process import eventually
from tests.tls.certificates import Authority

WAIT_SECONDS = 30.0
REFUSED_SECONDS = 1.0
VALUES = [b"", b"x", b"y" * 100, b"z" * 700_000, b"end"]
"""One of them is larger than what a client may send that has not logged in."""


@dataclass(frozen=True)
class Terms:
    """What a client is given: where to go, and what to log in with."""

    address: str
    mechanism: str
    user: str = "alice"
    password: str = PASSWORDS["alice"]
    authority: Path | None = None
    """Where there is TLS as well."""

    @property
    def token(self) -> str:
        """Without a signature; whoever has a wrong password has one that has expired."""
        expires = 2**40 if self.password == PASSWORDS.get(self.user) else 1
        return jwt.encode({"sub": self.user, "iat": 0, "exp": expires}, "", "none")

    @property
    def protocol(self) -> str:
        return "SASL_PLAINTEXT" if self.authority is None else "SASL_SSL"


class PythonToken(PythonTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class AioToken(AioTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class Client(Protocol):
    def echo(self, terms: Terms, topic: str, values: list[bytes]) -> list[bytes]:
        """Write to the topic, read as many from its start."""

    def complaint(self, terms: Terms) -> str:
        """What it says when it cannot log in."""


class Confluent:
    @staticmethod
    def _config(terms: Terms) -> dict[str, Any]:
        config: dict[str, Any] = {
            "bootstrap.servers": terms.address,
            "security.protocol": terms.protocol,
            "sasl.mechanism": terms.mechanism,
            "log_level": 0,
        }
        if terms.mechanism == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: (terms.token, float(2**33))
        else:
            config |= {"sasl.username": terms.user, "sasl.password": terms.password}
        return config if terms.authority is None else {**config, "ssl.ca.location": str(terms.authority)}

    def echo(self, terms: Terms, topic: str, values: list[bytes]) -> list[bytes]:
        config = self._config(terms)
        producer = Producer({**config, "message.max.bytes": 2_000_000})
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(WAIT_SECONDS) == 0
        consumer = Consumer({**config, "group.id": topic, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        read: list[bytes] = []
        try:
            while len(read) < len(values):
                message = consumer.poll(WAIT_SECONDS)
                assert message is not None
                assert message.error() is None
                read.append(message.value() or b"")
        finally:
            consumer.close()
        return read

    def complaint(self, terms: Terms) -> str:
        errors: list[str] = []
        config: dict[str, Any] = {**self._config(terms), "error_cb": lambda error: errors.append(str(error))}
        admin = AdminClient(config)
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=REFUSED_SECONDS)
        admin.poll(0)
        return " ".join(errors)


class KafkaPython:
    @staticmethod
    def _config(terms: Terms) -> dict[str, Any]:
        return {
            "bootstrap_servers": terms.address,
            "security_protocol": terms.protocol,
            "sasl_mechanism": terms.mechanism,
            "sasl_plain_username": terms.user,
            "sasl_plain_password": terms.password,
            "sasl_oauth_token_provider": PythonToken(terms.token) if terms.mechanism == "OAUTHBEARER" else None,
            "ssl_cafile": None if terms.authority is None else str(terms.authority),
        }

    def echo(self, terms: Terms, topic: str, values: list[bytes]) -> list[bytes]:
        config = self._config(terms)
        with closing(KafkaProducer(**config, max_request_size=2_000_000)) as producer:
            for value in values:
                producer.send(topic, value, partition=0).get(WAIT_SECONDS)
        read: list[bytes] = []
        with closing(KafkaConsumer(topic, **config, auto_offset_reset="earliest", group_id=topic)) as consumer:
            while len(read) < len(values):
                read.append(next(consumer).value)
        return read

    def complaint(self, terms: Terms) -> str:
        """In a process of its own: when it cannot connect, it leaves sockets to the collector."""
        config = {**self._config(terms), "bootstrap_timeout_ms": 1000, "max_block_ms": 1000}
        if config["sasl_oauth_token_provider"] is not None:
            config["sasl_oauth_token_provider"] = terms.token
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _CONNECT],
            input=json.dumps(config),
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT_SECONDS,
        )
        return done.stdout


_CONNECT = """
import json, sys
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

class Token(AbstractTokenProvider):
    def __init__(self, token):
        self.text = token
    def token(self):
        return self.text

config = json.load(sys.stdin)
if config["sasl_oauth_token_provider"]:
    config["sasl_oauth_token_provider"] = Token(config["sasl_oauth_token_provider"])
try:
    KafkaProducer(**config)
except KafkaError as error:
    print(error)
"""


class AioKafka:
    @staticmethod
    def _config(terms: Terms) -> dict[str, Any]:
        return {
            "bootstrap_servers": terms.address,
            "security_protocol": terms.protocol,
            "sasl_mechanism": terms.mechanism,
            "sasl_plain_username": terms.user,
            "sasl_plain_password": terms.password,
            "sasl_oauth_token_provider": AioToken(terms.token) if terms.mechanism == "OAUTHBEARER" else None,
            "ssl_context": terms.authority and ssl.create_default_context(cafile=str(terms.authority)),
        }

    def echo(self, terms: Terms, topic: str, values: list[bytes]) -> list[bytes]:
        async def run() -> list[bytes]:
            config = self._config(terms)
            async with AIOKafkaProducer(**config, max_request_size=2_000_000) as producer:
                for value in values:
                    await producer.send_and_wait(topic, value, partition=0)
            read: list[bytes] = []
            consumer = AIOKafkaConsumer(topic, **config, auto_offset_reset="earliest", group_id=topic)
            async with consumer:
                while len(read) < len(values):
                    read.append((await consumer.getone()).value)
            return read

        return asyncio.run(run())

    def complaint(self, terms: Terms) -> str:
        async def run() -> str:
            producer = AIOKafkaProducer(**self._config(terms), request_timeout_ms=1000)
            try:
                # It takes the first of the two answers to a bad token for a success, and fails at what it sends then.
                await producer.start()
                await producer.send_and_wait("any", b"x")
            except KafkaError as error:
                return repr(error)
            finally:
                await producer.stop()
            return ""

        return asyncio.run(run())


CLIENTS = {"librdkafka": Confluent(), "kafka-python": KafkaPython(), "aiokafka": AioKafka()}
every_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
every_mechanism = pytest.mark.parametrize("mechanism", [*MECHANISM_NAMES, "OAUTHBEARER"])
AUTHORITY = Authority()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return AUTHORITY.pem(tmp_path_factory.mktemp("authority") / "ca.pem")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    directory = tmp_path_factory.mktemp("broker")
    settings = {
        "listeners": f"{SETTINGS['listeners']},SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": f"{SETTINGS['sasl.enabled.mechanisms']},OAUTHBEARER",
        **OWN_TOKENS,
        "group.initial.rebalance.delay.ms": "0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(AUTHORITY.issue("127.0.0.1", name="broker").pem(directory / "own.pem")),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": SETTINGS[f"{PREFIX}.plain.sasl.jaas.config"],
    }
    running = SaslBroker(directory / "data", settings).start()
    yield running
    running.stop()


@every_client
@every_mechanism
def test_a_client_with_the_right_password_reads_what_it_wrote(
    client: Client, mechanism: str, broker: SaslBroker
) -> None:
    topic = f"{type(client).__name__}-{mechanism}"
    assert client.echo(Terms(broker.address, mechanism), topic, VALUES) == VALUES


@every_client
@every_mechanism
def test_a_client_logs_in_over_tls(client: Client, mechanism: str, broker: SaslBroker, authority: Path) -> None:
    """S4: the principal is that of the login."""
    terms = Terms(f"127.0.0.1:{broker.port('SASL_SSL')}", mechanism, authority=authority)
    assert client.echo(terms, f"{type(client).__name__}-{mechanism}-over-tls", VALUES) == VALUES


@every_client
@every_mechanism
def test_a_client_with_a_wrong_password_is_not_let_in_over_tls_and_says_so(
    client: Client, mechanism: str, broker: SaslBroker, authority: Path
) -> None:
    address = f"127.0.0.1:{broker.port('SASL_SSL')}"
    check_complaint(client, Terms(address, mechanism, password="wrong", authority=authority))


@every_client
@every_mechanism
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
def test_a_client_with_a_wrong_password_is_not_let_in_and_says_so(
    client: Client, mechanism: str, user: str, password: str, broker: SaslBroker
) -> None:
    check_complaint(client, Terms(broker.address, mechanism, user, password))


def check_complaint(client: Client, terms: Terms) -> None:
    complaint = client.complaint(terms)
    assert complaint
    if isinstance(client, Confluent):
        assert "_AUTHENTICATION" in complaint
        own_text = "invalid_token" if terms.mechanism == "OAUTHBEARER" else "Authentication failed"
        assert own_text in complaint, "the broker's own text"


def test_librdkafka_logs_in_again_before_its_login_expires(tmp_path: Path) -> None:
    """S74"""
    broker = SaslBroker(tmp_path, {"connections.max.reauth.ms": "1500"}).start()
    try:
        producer = Producer(Confluent._config(Terms(broker.address, "SCRAM-SHA-256")))
        failed: list[object] = []

        def has_logged_in_again() -> bool:
            producer.produce("again", b"x", on_delivery=lambda error, _: failed.append(error) if error else None)
            assert producer.flush(WAIT_SECONDS) == 0
            logins = broker.parts.counters.logins
            return logins["SASL_PLAINTEXT", "SCRAM-SHA-256", LoginOutcome.REAUTHENTICATION_SUCCESS] >= 2

        eventually(has_logged_in_again)
        assert not failed
        assert not broker.parts.counters.logins["SASL_PLAINTEXT", "SCRAM-SHA-256", LoginOutcome.EXPIRED]
    finally:
        broker.stop()
