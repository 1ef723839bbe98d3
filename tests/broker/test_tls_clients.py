"""The three clients that Python people use, over TLS and mutual TLS: each works where it should, and says what is wrong
where it should not (security facts S16, S17, S70, S72)."""

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

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from tests.broker.tls import ExpiredBroker, TlsBroker
from tests.tls.certificates import LONG_AGO, Authority, Identity

WAIT_SECONDS = 30.0
REFUSED_SECONDS = 1.0
AUTHORITY, STRANGER = Authority(), Authority()
ALICE = AUTHORITY.issue(name="alice")


@dataclass(frozen=True)
class Terms:
    """What a client is given: where to go, whom to trust, what to show."""

    address: str
    authority: Path
    certificate: Path | None = None
    key: Path | None = None


class Client(Protocol):
    def echo(self, terms: Terms, topic: str, values: list[bytes]) -> list[bytes]:
        """Write to the topic, read as many from its start."""

    def complaint(self, terms: Terms) -> str:
        """What it says when it cannot connect."""


class Confluent:
    @staticmethod
    def _config(terms: Terms) -> dict[str, Any]:
        config = {
            "bootstrap.servers": terms.address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(terms.authority),
            "log_level": 0,
        }
        if terms.certificate is not None:
            config |= {"ssl.certificate.location": str(terms.certificate), "ssl.key.location": str(terms.key)}
        return config

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
            "security_protocol": "SSL",
            "ssl_cafile": str(terms.authority),
            "ssl_certfile": None if terms.certificate is None else str(terms.certificate),
            "ssl_keyfile": None if terms.key is None else str(terms.key),
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
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _CONNECT, json.dumps(config)],
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
try:
    KafkaProducer(**json.loads(sys.argv[1]))
except KafkaError as error:
    print(error)
"""


class AioKafka:
    @staticmethod
    def _config(terms: Terms) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(terms.authority))
        if terms.certificate is not None:
            context.load_cert_chain(terms.certificate, terms.key)
        return {"bootstrap_servers": terms.address, "security_protocol": "SSL", "ssl_context": context}

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
                with pytest.raises(KafkaConnectionError) as caught:
                    await producer.start()
            finally:
                await producer.stop()
            return str(caught.value)

        return asyncio.run(run())


CLIENTS = {"librdkafka": Confluent(), "kafka-python": KafkaPython(), "aiokafka": AioKafka()}
every_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    own = AUTHORITY.issue("127.0.0.1", name="broker")
    running = TlsBroker(tmp_path_factory.mktemp("broker"), AUTHORITY, own).start()
    yield running
    running.stop()


@pytest.fixture
def files(tmp_path: Path, broker: TlsBroker) -> "Files":
    return Files(tmp_path, broker)


class Files:
    """What clients are given as paths."""

    def __init__(self, directory: Path, broker: TlsBroker) -> None:
        self._directory, self._broker = directory, broker

    def terms(
        self, listener: str, identity: Identity | None = None, authority: Authority = AUTHORITY, host: str = "127.0.0.1"
    ) -> Terms:
        address = f"{host}:{self._broker.port(listener)}"
        trusted = authority.pem(self._directory / "trusted.pem")
        if identity is None:
            return Terms(address, trusted)
        certificate, key = self._directory / "client.pem", self._directory / "client.key"
        certificate.write_text(identity.chain)
        key.write_text(identity.key())
        return Terms(address, trusted, certificate, key)


@every_client
@pytest.mark.parametrize("listener", ["SSL", "MUTUAL"])
def test_a_client_whose_terms_are_right_reads_what_it_wrote(client: Client, listener: str, files: Files) -> None:
    terms = files.terms(listener, ALICE if listener == "MUTUAL" else None)
    topic = f"{type(client).__name__}-{listener}"
    values = [b"", b"x", b"y" * 100, b"z" * 1_000_000, b"end"]
    assert client.echo(terms, topic, values) == values


WRONG = {
    # Sides that cannot agree → what librdkafka says; the others tell little (S72).
    "an authority that did not sign the broker": ("SSL", None, STRANGER, "127.0.0.1", "certificate verify failed"),
    "a host that the certificate does not name": ("SSL", None, AUTHORITY, "localhost", "certificate verify failed"),
    "no certificate": ("MUTUAL", None, AUTHORITY, "127.0.0.1", "SSL"),
    "a certificate of a stranger": (
        "MUTUAL",
        STRANGER.issue(name="mallory"),
        AUTHORITY,
        "127.0.0.1",
        "SSL",
    ),
    "a certificate that has expired": (
        "MUTUAL",
        AUTHORITY.issue(name="old", until=LONG_AGO),
        AUTHORITY,
        "127.0.0.1",
        "SSL",
    ),
}


@every_client
@pytest.mark.parametrize("case", WRONG)
def test_a_client_whose_terms_are_wrong_is_not_let_in_and_says_so(client: Client, case: str, files: Files) -> None:
    listener, identity, authority, host, said = WRONG[case]
    complaint = client.complaint(files.terms(listener, identity, authority, host))
    assert complaint
    if isinstance(client, Confluent):
        assert said in complaint


@pytest.fixture(scope="module")
def expired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExpiredBroker]:
    running = ExpiredBroker(tmp_path_factory.mktemp("expired"), AUTHORITY).start()
    yield running
    running.stop()


@every_client
def test_a_client_does_not_take_a_brokers_certificate_that_has_expired(
    client: Client, expired: ExpiredBroker, tmp_path: Path
) -> None:
    complaint = client.complaint(Files(tmp_path, expired).terms("SSL"))
    assert complaint
    if isinstance(client, Confluent):
        assert "certificate verify failed" in complaint
